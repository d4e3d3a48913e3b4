package zkserver_test

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/zkserver"
)

// The server counts on from what its log says, until its count is at the end.
func TestAServerThatIsNearTheLastNumber(t *testing.T) {
	ownServer(t)
	s, err := zkserver.StartNear(t.Context(), zkserver.LastNumber-1, "/near", "/near/too")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	conn := session(t, s)
	for _, dir := range []string{"/near/too", "/near"} {
		makes := func(name string) string {
			made, err := conn.Create(dir+"/"+name, nil, zk.FlagEphemeralSequential, acl)
			require.NoError(t, err)
			return made
		}
		assert.Equal(t, dir+"/a-2147483646", makes("a-"))
		assert.Equal(t, dir+"/a-2147483647", makes("a-"), "the last number")
		assert.Equal(t, dir+"/b-2147483647", makes("b-"), "and it is given again")
		_, err := conn.Create(dir+"/a-", nil, zk.FlagEphemeralSequential, acl)
		assert.ErrorIs(t, err, zk.ErrNodeExists, "but not to the same name")
	}
	names, _, err := conn.Children("/near/too")
	require.NoError(t, err)
	assert.Len(t, names, 3, "nothing else is in the directory: %v", names)
}
