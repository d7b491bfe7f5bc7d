package redis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/internal/redistest"
)

func TestOpenOverTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))

	s := redistest.Start(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	l.Close()
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	s.Do("CONFIG", "SET", "tls-cert-file", certFile, "tls-key-file", keyFile,
		"tls-ca-cert-file", certFile, "tls-auth-clients", "no", "tls-port", port)

	c := open(t, "rediss://"+addr+"?skip_verify=true")
	require.NoError(t, c.Set(bg, "k", "v", time.Minute))
	v, _, err := c.Get(bg, "k")
	require.NoError(t, err)
	require.Equal(t, "v", v)

	// A certificate that nobody vouches for is an outage, and is given up in time.
	strict, err := redis.Open("rediss://"+addr, redis.Config{})
	require.NoError(t, err)
	defer strict.Close()
	wantAway(t, strict, 250*time.Millisecond+slack)
}
