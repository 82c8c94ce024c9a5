"""Alerts: who began or ceased to pass, found without a look at keys that neither got an event nor became due."""
