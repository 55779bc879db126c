"""How often the audit errs: null worlds, spike-ins on a pool of one's own, power, and the table by options shown."""
