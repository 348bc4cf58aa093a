"""Binary and grey-value morphology."""
