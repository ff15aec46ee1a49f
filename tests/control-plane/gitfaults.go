// Room: faults of the git server.
//
// Each request reads the file "fault" and fails as it says, and each leaves a
// line in the access log: time, method, request URI, status, bytes of the
// body, milliseconds, the client's address, git command. The line is written before the client can
// see the end of the response, so a test may read the log right after its
// fetch.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// recorder counts what is sent, and cuts it short when limit is not negative.
type recorder struct {
	http.ResponseWriter
	status int
	sent   int64
	limit  int64
}

var errTruncated = errors.New("truncated on purpose")

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(data []byte) (int, error) {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	cut := false
	if r.limit >= 0 && int64(len(data)) > r.limit-r.sent {
		data, cut = data[:r.limit-r.sent], true
	}
	count, err := r.ResponseWriter.Write(data)
	r.sent += int64(count)
	if cut && err == nil {
		return count, errTruncated
	}
	return count, err
}

// Unwrap lets a response controller find what this wraps.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (f *forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	command := gitCommand(r)
	recorded := &recorder{ResponseWriter: w, limit: -1}
	aborted := f.answer(recorded, r)
	f.record(recorded, r, command, begun)
	if aborted {
		// Send what was let through, then drop the connection (or the stream)
		// without a proper end.
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// answer serves one request; true when its connection is to be cut.
func (f *forge) answer(w *recorder, r *http.Request) (aborted bool) {
	kind, values, err := f.fault()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return false
	}
	switch kind {
	case "deny":
		http.Error(w, "denied on purpose", http.StatusForbidden)
		return false
	case "unauthorized":
		unauthorized(w)
		return false
	case "error":
		http.Error(w, "failed on purpose", http.StatusInternalServerError)
		return false
	case "hang":
		// The server notices that the client is gone only once the request was
		// read to its end.
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		return true
	case "truncate":
		if w.limit, err = strconv.ParseInt(values[0], 10, 64); err != nil || w.limit < 0 {
			http.Error(w, "truncate wants a number", http.StatusInternalServerError)
			return false
		}
	case "redirect":
		if rest, found := strings.CutPrefix(r.URL.RequestURI(), values[0]); found {
			w.Header().Set("Location", values[1]+rest)
			w.WriteHeader(http.StatusFound)
			return false
		}
	}
	user, ok := f.allowed(r)
	if !ok {
		unauthorized(w)
		return false
	}
	f.backend(w, r, user)
	return w.limit >= 0 && w.sent >= w.limit
}

func unauthorized(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
	http.Error(w, "credentials are wanted", http.StatusUnauthorized)
}

// fault reads what is to go wrong now. A misspelled fault is an error, lest a
// test passes because nothing went wrong.
func (f *forge) fault() (kind string, values []string, err error) {
	data, err := os.ReadFile(f.state.path("fault"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", nil, fmt.Errorf("failed to read the fault: %w", err)
	}
	words := strings.Fields(string(data))
	if len(words) == 0 {
		return "", nil, nil
	}
	wanted := map[string]int{"deny": 0, "unauthorized": 0, "error": 0, "hang": 0, "truncate": 1, "redirect": 2}
	if count, known := wanted[words[0]]; known && len(words) == 1+count {
		return words[0], words[1:], nil
	}
	return "", nil, fmt.Errorf("unknown fault %q", strings.TrimSpace(string(data)))
}

func (f *forge) record(w *recorder, r *http.Request, command string, begun time.Time) {
	f.logging.Lock()
	defer f.logging.Unlock()
	_, _ = fmt.Fprintf(f.log, "%s %s %s %d %d %d %s %s\n",
		begun.UTC().Format("2006-01-02T15:04:05.000Z"), r.Method, r.URL.RequestURI(), w.status, w.sent,
		time.Since(begun).Milliseconds(), r.RemoteAddr, command)
}

// peekSize is enough of a request's body to see its first line.
const peekSize = 256

// gitCommand says what a request asks of git. Protocol version 2 sends both
// "ls-refs" and "fetch" to the same path, so its body is looked into.
func gitCommand(r *http.Request) string {
	switch {
	case strings.HasSuffix(r.URL.Path, "/info/refs"):
		return "advertise"
	case strings.HasSuffix(r.URL.Path, "/git-receive-pack"):
		return "push"
	case !strings.HasSuffix(r.URL.Path, "/git-upload-pack"):
		return "-"
	}
	body := bufio.NewReaderSize(r.Body, peekSize)
	start, _ := body.Peek(peekSize)
	r.Body = struct {
		io.Reader
		io.Closer
	}{body, r.Body}
	if r.Header.Get("Content-Encoding") == "gzip" {
		plain, err := gzip.NewReader(bytes.NewReader(start))
		if err != nil {
			return "-"
		}
		// The end is missing, so an error is certain; the start is what counts.
		start = make([]byte, peekSize/4)
		count, _ := io.ReadFull(plain, start)
		start = start[:count]
	}
	if bytes.Contains(start, []byte("command=ls-refs")) {
		return "ls-refs"
	}
	return "fetch"
}
