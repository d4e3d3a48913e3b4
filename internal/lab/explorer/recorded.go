package explorer

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"os"
	"path/filepath"

	"zklock/internal/explore"
	"zklock/internal/lab/locks"
)

// The games of the book's page. make explore RECORD=1 plays them anew.
//
//go:embed games/*.json.gz
var recorded embed.FS

// Committed lists the locks of these games.
var Committed = []string{"3", "4", "5", locks.PartA, "W19", "W23"}

// AsCommitted are the settings of these games.
var AsCommitted = explore.Settings{Clients: 2, Faults: 1, Switches: explore.Unbound}

// Recorded returns the committed game of a lock.
func Recorded(key string) (*Game, error) {
	packed, err := recorded.ReadFile("games/" + key + ".json.gz")
	if err != nil {
		return nil, err
	}
	text, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	g := &Game{}
	return g, json.NewDecoder(text).Decode(g)
}

// Keep writes a game to its file, for a program that runs in the root of the repository.
func Keep(key string, g *Game) error {
	text, err := json.Marshal(g)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err = w.Write(text); err != nil {
		return err
	}
	if err = w.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join("internal", "lab", "explorer", "games", key+".json.gz"), packed.Bytes(), 0o644)
}
