// A process that loads nothing.
