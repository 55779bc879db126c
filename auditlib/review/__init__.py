"""Work for people: packets out, decisions in, agreement, prevalence, and a panel for JupyterLab."""
