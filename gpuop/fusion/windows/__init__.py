"""How far results depend on arguments, and programs for windows of a grid."""
