package mermaid

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestASequence(t *testing.T) {
	svg, err := Draw(`sequenceDiagram
    participant Ada
    participant Z as ZooKeeper
    Ada->>Z: create <1>
    Z--xAda: lost
    loop again
        Z->>Ada: ping
    end
    Note over Ada, Z: both wait`)
	require.NoError(t, err)
	isXML(t, svg)
	said := "Ada → ZooKeeper: create &lt;1&gt;. ZooKeeper → Ada: lost. again. " +
		"ZooKeeper → Ada: ping. Ada, ZooKeeper: both wait"
	assert.Contains(t, svg, `aria-label="`+said+`"`)
	assert.Equal(t, 2, strings.Count(svg, `class="head"`), "heads: what is lost has none")
	assert.Equal(t, 1, strings.Count(svg, `class="loop"`))
	assert.Equal(t, 1, strings.Count(svg, `class="lost"`))
	assert.Equal(t, 1, strings.Count(svg, `class="note"`))
}

func TestAFlow(t *testing.T) {
	svg, err := Draw(`flowchart RL
    subgraph queue["the queue"]
        b["Ben: 1"]
    end
    a["Ada: 0"]
    b -- watches --> a
    a --- c`)
	require.NoError(t, err)
	isXML(t, svg)
	assert.Contains(t, svg, `aria-label="the queue. Ben: 1 → Ada: 0: watches. Ada: 0: c"`)
	assert.Equal(t, 3, strings.Count(svg, `class="box"`))
	assert.Equal(t, 1, strings.Count(svg, `class="head"`))
}

func TestWhatIsNotKnownIsAnError(t *testing.T) {
	for _, source := range []string{
		"pie",
		"sequenceDiagram\nalt again",
		"sequenceDiagram\nparticipant A\nA->>B: who is B?",
		"flowchart LR\na ==> b",
	} {
		_, err := Draw(source)
		assert.Error(t, err, source)
	}
}

func isXML(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := d.Token()
		if err == io.EOF {
			return
		}
		require.NoError(t, err, text)
	}
}
