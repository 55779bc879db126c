"""How often the audit is wrong: null worlds, spike-ins on the user's own pool, power, and the table by options shown."""
