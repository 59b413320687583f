"""KNOX's evaluation of the guards: a pool of 400 flows over thirteen workloads, each flow allowed or to be blocked.

Source: KNOX §5 and §6.1 (pool, workloads, what counts); InjecAgent (toolkits, attacks). The flows are ours, by seed.
"""
