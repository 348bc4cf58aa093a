"""The interface of devices, and code that several devices share."""
