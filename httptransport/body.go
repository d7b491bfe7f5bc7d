package httptransport

import (
	"errors"
	"io"
	"net/http"
)

// own returns the body of a response so that its attempt is released when nobody
// needs it any more: when it is closed or, if it can only be read, at its end.
func own(b io.ReadCloser, attempt *attemptContext) io.ReadCloser {
	if b == nil || b == http.NoBody {
		attempt.release()
		return b
	}
	if rwc, ok := b.(io.ReadWriteCloser); ok {
		return &upgraded{ReadWriteCloser: rwc, attempt: attempt}
	}
	return &body{ReadCloser: b, attempt: attempt}
}

type body struct {
	io.ReadCloser
	attempt *attemptContext
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = b.attempt.explain(err)
	}
	if err != nil {
		b.attempt.release()
	}
	return n, err
}

func (b *body) Close() error {
	defer b.attempt.release()
	return b.ReadCloser.Close()
}

// upgraded is the body of a response that hands over its connection. The end of
// what can be read is not the end of what can be written.
type upgraded struct {
	io.ReadWriteCloser
	attempt *attemptContext
}

func (b *upgraded) Close() error {
	defer b.attempt.release()
	return b.ReadWriteCloser.Close()
}

// CloseWrite closes the connection for writing, where the base can do that.
func (b *upgraded) CloseWrite() error {
	if c, ok := b.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}
