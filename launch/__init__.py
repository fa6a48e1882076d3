"""The actions: Ray, the processes of trials, and what runs inside them."""
