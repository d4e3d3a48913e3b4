package play

import (
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"zklock/internal/lab/book"
	"zklock/internal/lab/herd"
	"zklock/internal/lab/locks"
	"zklock/internal/lab/stage"
	"zklock/internal/lang"
	"zklock/internal/property"
)

//go:embed page.html.tmpl
var markup string

//go:embed play.css
var css string

//go:embed play.js
var script string

var live = template.Must(template.New("play").Funcs(stage.Functions).Parse(markup))

// listen serves the page on a port that only this machine can reach. The address has a token. A
// request without the token gets nothing but the book.
func (s *service) listen() (address string, close func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	crowds, err := os.ReadFile(filepath.Join(s.repo, herd.File))
	var pauses []byte
	if err == nil {
		pauses, err = os.ReadFile(filepath.Join(s.repo, book.PausesFile))
	}
	if err != nil {
		return "", nil, errors.Join(err, listener.Close())
	}
	host, token := listener.Addr().String(), rand.Text()
	server := &http.Server{Handler: s.guarded(host, token, crowds, pauses), ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener)
	return fmt.Sprintf("http://%s/?token=%s", host, token), func() { server.Close() }, nil
}

// guarded answers a request only if it has the token, names this host, and does not come from a page
// of another origin. A request for the book needs no token.
func (s *service) guarded(host, token string, crowds, pauses json.RawMessage) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = live.Execute(w, map[string]any{
			"Token":    token,
			"CSS":      template.CSS(stage.Style + herd.Style + css),
			"Script":   template.JS(stage.Common + stage.Script + stage.Clock + stage.Strip + herd.Script + script),
			"Language": stage.Language(),
			"Choice": map[string]any{"locks": locks.Choices, "lessons": lessons, "properties": broken, "max": most,
				"crowds": crowds, "pauses": pauses},
			"Legend": stage.Legend,
		})
	})
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("POST /do", s.command)
	mux.HandleFunc("GET /save", s.save)
	mux.HandleFunc("GET /recorded", s.recorded)
	public := http.NewServeMux() // only the book: it is published anyway, and changes nothing
	public.HandleFunc("GET /book/", s.reads)
	_, port, _ := net.SplitHostPort(host)
	hosts := []string{host, "localhost:" + port}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		known := r.Header.Get("Zklock-Token")
		if r.Method == http.MethodGet {
			known = r.URL.Query().Get("token")
		}
		answers := mux
		if strings.HasPrefix(r.URL.Path, "/book/") {
			answers, known = public, token
		}
		origin := r.Header.Get("Origin")
		switch {
		case !slices.Contains(hosts, r.Host),
			origin != "" && origin != "http://"+r.Host,
			subtle.ConstantTimeCompare([]byte(known), []byte(token)) == 0:
			http.Error(
				w,
				"make play answers only its own page, at the address that it has printed",
				http.StatusForbidden,
			)
			return
		}
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		answers.ServeHTTP(w, r)
	})
}

// policy allows the page to use its own scripts, styles and images, and to send requests to this
// service, and nothing else.
const policy = "default-src 'none'; " +
	"script-src 'unsafe-inline'; " +
	"style-src 'unsafe-inline'; " +
	"img-src data: 'self'; " +
	"connect-src 'self'; " +
	"base-uri 'none'; " +
	"form-action 'none'; " +
	"frame-ancestors 'none'"

// reads serves the book. The first request builds it.
func (s *service) reads(w http.ResponseWriter, r *http.Request) {
	files, err := s.book()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	http.StripPrefix("/book", files).ServeHTTP(w, r)
}

// events sends the page everything that there is to show, and then what is new.
func (s *service) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	told := &reader{told: stage.Nothing()}
	s.opens(1)
	defer s.opens(-1)
	for tick := time.Tick(25 * time.Millisecond); ; {
		if news := s.news(told); news != "" {
			fmt.Fprintf(w, "data: %s\n\n", news)
			w.(http.Flusher).Flush()
		}
		select {
		case <-tick:
		case <-r.Context().Done():
			return
		case <-s.ctx.Done():
			return
		}
	}
}

// opens notes that a page has been opened, if n is 1, or closed, if n is -1.
func (s *service) opens(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages += n
}

func (s *service) command(w http.ResponseWriter, r *http.Request) {
	var c command
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1000))
	in.DisallowUnknownFields()
	err := in.Decode(&c)
	if err == nil {
		err = s.do(c)
	}
	if err != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(err.Error()) // on an error, the page no longer waits for it
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// recorded sends the stories of the boards so far, for the page's time line.
func (s *service) recorded(w http.ResponseWriter, _ *http.Request) {
	stories := []stage.Replay{}
	s.mu.Lock()
	for _, b := range s.laid() {
		if b.Acted() {
			stories = append(stories, b.Timeline(s.now()))
		}
	}
	isWhole := len(stories) == len(s.laid())
	s.mu.Unlock()
	if !isWhole {
		http.Error(w, "nothing has happened yet", http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(stories) // on an error, the page no longer waits for it
}

// save sends a page that the reader can keep, with what has happened on the boards.
func (s *service) save(w http.ResponseWriter, _ *http.Request) {
	var locks []stage.Column
	var stories []stage.Replay
	s.mu.Lock()
	for _, b := range s.laid() {
		if b.Acted() {
			l := stage.Column{Key: b.Key, Heading: b.Name, Lesson: b.Lesson}
			if len(locks) > 0 && locks[0].Key == l.Key {
				l.Key += "-again"
				l.Heading = lang.Of("%s, once more", "%s（再一次）", b.Name)
			}
			locks, stories = append(locks, l), append(stories, b.Replay(s.now()))
		}
	}
	s.mu.Unlock()
	if len(locks) == 0 { // the page does not ask in this case
		http.Error(w, "nothing has happened yet", http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="zklock.html"`)
	page := stage.Kept(s.server.Origin,
		text("What was played", "操作记录"),
		text("Each action, in order, and its result.", "按先后顺序列出做过的操作，以及各自的结果。"),
		locks, stories)
	_ = page.Write(w) // on an error, the page no longer waits for it
}

// broken has the names of the properties whose violation a board can show.
var broken = map[stage.Breaks]lang.Text{
	stage.OneHolder:       property.OneHolder.Name,
	stage.CrashFrees:      property.CrashFrees.Name,
	stage.LostCreateReply: property.LostCreateReply.Name,
	stage.GivingUp:        property.GivingUp.Name,
	stage.ToldOfLoss:      property.ToldOfLoss.Name,
}
