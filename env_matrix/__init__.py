"""Where and when: stacks, locks, the asv plugin and the command line. Imported only by the controller."""
