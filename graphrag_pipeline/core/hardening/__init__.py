"""Safety against full disks, kills, interrupts, small memory, and other processes."""
