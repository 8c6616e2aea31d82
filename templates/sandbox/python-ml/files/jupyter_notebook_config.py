# The notebook server listens on the sandbox's loopback only. Requests reach it through sandboxd, which checks
# access, so there is no second password. The server's own check that requests come from its own page (Origin against
# Host) stays on.
c.NotebookApp.ip = "127.0.0.1"
c.NotebookApp.port = 8888
c.NotebookApp.port_retries = 0
c.NotebookApp.open_browser = False
c.NotebookApp.token = ""
c.NotebookApp.password = ""
c.NotebookApp.allow_remote_access = True
c.NotebookApp.quit_button = False
