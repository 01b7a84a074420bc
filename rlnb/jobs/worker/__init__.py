"""The process that executes the frozen notebook in a kernel of its own."""
