"""Functions composed of table rows and expanded while recording: no device, dialect or pass knows them."""
