"""What is measured: one module a model, imported only inside a stack's environment."""
