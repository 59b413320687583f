"""A hundred deviations at the level of system calls: fifty attempts, each as a tool call and from inside of a tool.

Source: KNOX §6.1, the system-call guard with the monitor alone and with the kernel's sandbox; the attempts are ours.
"""
