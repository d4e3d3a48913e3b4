package property

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/zktest"
)

// OverSession makes a Subject of a lock that is made from a session and a path, at any stair of
// step 5: its Lock returns an error, or a hold and an error. If it has no such Lock, or nothing that
// unlocks, Lock returns an error that says so. A hold may lack Context and Token: then its work gets
// the parent, the token is 0, and only the properties that are about them fail.
func OverSession[S zktest.Session, L any](
	name string,
	open func(servers []string, timeout time.Duration, dial zk.Dialer) (S, error),
	newLock func(S, string) L,
) Subject {
	return Subject{
		Name: name,
		Open: func(servers []string, timeout time.Duration, dial zk.Dialer) (zktest.Session, error) {
			s, err := open(servers, timeout, dial)
			if err != nil {
				return nil, err
			}
			return s, nil
		},
		Ways: func(s zktest.Session, path string) (zktest.Way, *zktest.Way) {
			session, _ := s.(S) // S's own nil, if s is nil
			lock := reflect.ValueOf(newLock(session, path))
			if l, ok := lock.Interface().(zktest.Locker); ok { // the lock itself unlocks
				return zktest.Way{Lock: func(ctx context.Context) (zktest.Hold, error) {
					if err := l.Lock(ctx); err != nil {
						return nil, err
					}
					return zktest.HoldOf(l.Unlock), nil
				}, Unlock: l.Unlock}, nil
			}
			return zktest.Way{Lock: calling(lock, "Lock"), TryLock: calling(lock, "TryLock")}, nil
		},
	}
}

// calling calls a method that returns a hold of some kind and an error. It is nil if there is no such TryLock.
func calling(lock reflect.Value, method string) func(context.Context) (zktest.Hold, error) {
	call := lock.MethodByName(method)
	if !call.IsValid() && method == "TryLock" {
		return nil
	}
	return func(ctx context.Context) (zktest.Hold, error) {
		if err := misses(call, method); err != nil {
			return nil, err
		}
		results := call.Call([]reflect.Value{reflect.ValueOf(&ctx).Elem()})
		if err, _ := results[1].Interface().(error); err != nil {
			return nil, err
		}
		return anyHold{results[0].Interface()}, nil
	}
}

// The methods of a hold, each for itself.
type (
	unlocker  interface{ Unlock() error }
	contexter interface {
		Context(parent context.Context) context.Context
	}
	tokener interface{ Token() int64 }
)

// misses says what keeps a method of the lock from returning a hold that unlocks, or returns nil.
func misses(call reflect.Value, method string) error {
	if !call.IsValid() {
		return fmt.Errorf("your lock has no method %s", method)
	}
	got := call.Type()
	takesContext := got.NumIn() == 1 && got.In(0) == reflect.TypeFor[context.Context]()
	returnsError := got.NumOut() > 0 && got.Out(got.NumOut()-1) == reflect.TypeFor[error]()
	switch {
	case takesContext && returnsError && got.NumOut() == 1:
		return errors.New("your lock has no Unlock() error; from 5.6 on, Lock returns (*Hold, error), and the Hold has it")
	case !takesContext || !returnsError || got.NumOut() != 2:
		return fmt.Errorf("your %s is a %v; from 5.6 on, it is a func(context.Context) (*Hold, error)", method, got)
	case !got.Out(0).Implements(reflect.TypeFor[unlocker]()):
		return errors.New("your Hold has no Unlock() error; 5.6 says what it is for")
	}
	return nil
}

// anyHold is a hold that may lack some methods yet.
type anyHold struct{ hold any }

func (h anyHold) Context(parent context.Context) context.Context {
	if c, ok := h.hold.(contexter); ok {
		return c.Context(parent)
	}
	return parent
}

func (h anyHold) Token() int64 {
	if t, ok := h.hold.(tokener); ok {
		return t.Token()
	}
	return 0
}

func (h anyHold) Unlock() error { return h.hold.(unlocker).Unlock() }

// has reports whether a hold has the method of M. Only that of a lock at a stair of step 5 may lack it.
func has[M any](h zktest.Hold) bool {
	own, isAny := h.(anyHold)
	if !isAny {
		return true
	}
	_, ok := own.hold.(M)
	return ok
}
