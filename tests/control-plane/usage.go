// Room: usage.
//
// What is printed when the binary is run alone.
package main

const usage = `control-plane: a real Kubernetes control plane and a git forge for tests, as processes of one binary.

Usage:
  control-plane up --state DIR [--parts LIST|minimal|all] [--watch-parent PID] [--keep] [--fsync]
      Starts the parts (etcd,apiserver,controller-manager,scheduler,kwok; minimal = etcd,apiserver), waits until
      ready, writes DIR/kubeconfig and returns, leaving them running. On existing data: restarts on that data.
      Example: control-plane up --state /tmp/plane --watch-parent $$

  control-plane down --state DIR [--keep] [--now]
      Stops everything of DIR (with --now by force, a second faster) and removes it (not with --keep).
      May be repeated.
      Example: control-plane down --state /tmp/plane

  control-plane status --state DIR
      A line per part: name, pid, port, running|paused|stopped.
      Example: control-plane status --state /tmp/plane

  control-plane kill|pause|resume|start|restart PART --state DIR
      SIGKILL, SIGSTOP, SIGCONT, start and wait until ready, kill and start. PART may also be git-server.
      Example: control-plane kill apiserver --state /tmp/plane

  control-plane token --state DIR --namespace NS --serviceaccount NAME [--duration 1h] [--out KUBECONFIG]
      Asks a token for a ServiceAccount (TokenRequest); prints it, or writes a kubeconfig that holds it.
      Example: control-plane token --state /tmp/plane --namespace apps --serviceaccount agent --out /tmp/agent.kubeconfig

  control-plane kubectl ...
      The real kubectl.
      Example: control-plane kubectl --kubeconfig /tmp/plane/kubeconfig get nodes

  control-plane git-init --state DIR NAME
      Makes the bare repository DIR/repositories/NAME.git (branch main, push allowed) and prints its path.
      Example: control-plane git-init --state /tmp/forge modules

  control-plane git-server --state DIR [--listen 127.0.0.1:0] [--user U --password P] [--token BEARER]
                           [--ssh AUTHORIZED_KEYS [--ssh-host-keys ed25519,ecdsa,rsa]] [--watch-parent PID] [--detach]
      Serves DIR/repositories by smart HTTP over TLS; writes DIR/ca.crt, DIR/url, DIR/access.log and prints the URL.
      The file DIR/fault, read at each request, makes it fail: deny | unauthorized | error | hang | truncate N | redirect FROM TO.
      With --ssh the account git may fetch by ssh as well; writes DIR/ssh-address and DIR/ssh-host-keys.
      Example: control-plane git-server --state /tmp/forge --user ci --password secret --detach

  control-plane etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kwok ...
      Runs that component in the foreground with its own flags.
      Example: control-plane kube-apiserver --help
`
