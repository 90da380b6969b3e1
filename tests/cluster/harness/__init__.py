"""The parts of tests/cluster/cluster, one purpose each.

command_line   what can be asked for, and where it goes
up, cleanup    the making and the removing of a cluster; commands: everything between the two
state          one cluster's name, folder, addresses and processes; the lock between clusters
machine        what this machine must have and may do
network        subnet, bridge, links and their rates
slurm          slurm.conf, slurmctld, and the namespaces that make a slurmd a node
lbf            the plugin's arguments, lbfd, the variables of a user's shell
processes      which processes are a cluster's own, and how they are ended
shell          commands, messages, files and waiting, for all of them
"""
