// Room: forge.
//
// Serves the bare repositories of a state directory as forges do: smart HTTP,
// with credentials when asked, by running the installed git's own
// "http-backend" for each request. What git does is thus git's, not a model's.
package main

import (
	"crypto/subtle"
	"flag"
	"fmt"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// forge answers requests for repositories.
type forge struct {
	state    state
	settings gitSettings
	git      string
	log      *os.File
	logging  sync.Mutex
}

func (s state) newForge(asked gitSettings) (*forge, error) {
	git, err := findGit()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.path("repositories"), 0o755); err != nil {
		return nil, fmt.Errorf("failed to make the directory of repositories: %w", err)
	}
	log, err := os.OpenFile(s.path("access.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("failed to open the access log: %w", err)
	}
	return &forge{state: s, settings: asked, git: git, log: log}, nil
}

func findGit() (string, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return "", fmt.Errorf("git is missing (on Debian: apt-get install git): %w", err)
	}
	return git, nil
}

// allowed checks credentials; the user's name is returned for git's sake.
func (f *forge) allowed(r *http.Request) (string, bool) {
	if f.settings.User == "" && f.settings.Token == "" {
		return "anonymous", true
	}
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return "token", f.settings.Token != "" && same(bearer, f.settings.Token)
	}
	user, password, ok := r.BasicAuth()
	if !ok {
		return "", false
	}
	if f.settings.Token != "" && same(password, f.settings.Token) {
		return user, true
	}
	known := f.settings.User != "" && same(user, f.settings.User) && same(password, f.settings.Password)
	return user, known
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// backend hands a request to git.
func (f *forge) backend(w http.ResponseWriter, r *http.Request, user string) {
	// The CGI host refuses chunked bodies although git reads them well: without
	// a length it reads to the end.
	r.TransferEncoding = nil
	environment := []string{
		"GIT_PROJECT_ROOT=" + f.state.path("repositories"),
		"GIT_HTTP_EXPORT_ALL=1",
		"GIT_CONFIG_NOSYSTEM=1",
		"HOME=" + f.state.directory,
		"REMOTE_USER=" + user,
	}
	if protocol := r.Header.Get("Git-Protocol"); protocol != "" {
		environment = append(environment, "GIT_PROTOCOL="+protocol)
	}
	host := &cgi.Handler{
		Path: f.git,
		Args: []string{"http-backend"},
		Dir:  f.state.directory,
		Env:  environment,
	}
	host.ServeHTTP(w, r)
}

var repositoryName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$`)

func commandGitInit(arguments []string) error {
	flags := flag.NewFlagSet("git-init", flag.ContinueOnError)
	directory := stateFlag(flags)
	positional, err := parse(flags, arguments)
	if err != nil {
		return err
	}
	if len(positional) != 1 || !repositoryName.MatchString(positional[0]) {
		return usagef("exactly one repository name is wanted, such as modules or team/modules")
	}
	s, err := createState(*directory)
	if err != nil {
		return err
	}
	git, err := findGit()
	if err != nil {
		return err
	}
	path := filepath.Join(s.path("repositories"), strings.TrimSuffix(positional[0], ".git")+".git")
	steps := [][]string{
		{"init", "--quiet", "--bare", "--initial-branch=main", path},
		{"-C", path, "config", "http.receivepack", "true"},
		{"-C", path, "config", "uploadpack.allowFilter", "true"},
		{"-C", path, "config", "uploadpack.allowAnySHA1InWant", "true"},
		// A push must leave no process behind that packs the repository.
		{"-C", path, "config", "receive.autogc", "false"},
	}
	for _, step := range steps {
		command := exec.Command(git, step...)
		command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", strings.Join(step, " "), err, output)
		}
	}
	fmt.Println(path)
	return nil
}
