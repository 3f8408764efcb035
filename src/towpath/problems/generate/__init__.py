"""Problems by seed: the workloads of the papers, and topologies to put them on. One file each, all plain functions."""
