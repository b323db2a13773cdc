// Package matrix is what every client of the matrix does, and what it has to read back (see ../../README.md).
package matrix

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand"
	"mime/multipart"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
)

// What the claim's Secret says.
var (
	Endpoint = os.Getenv("AWS_ENDPOINT_URL")
	Region   = os.Getenv("AWS_REGION")
	Bucket   = os.Getenv("BUCKET_NAME")
	KeyID    = os.Getenv("AWS_ACCESS_KEY_ID")
	Secret   = os.Getenv("AWS_SECRET_ACCESS_KEY")
)

// Client is what a client can do. What it doesn't have is nil.
type Client struct {
	Put        func(key string, data []byte) error
	Get        func(key string) ([]byte, error)
	GetRange   func(key string, first, last int64) ([]byte, error)
	List       func(prefix string) ([]string, error)
	Upload     func(path, key string) error
	Copy       func(source, key string) error
	DeleteMany func(keys []string) error
	PresignPut func(key string) (string, error)
	PresignGet func(key string) (string, error)
	Form       func(key string, most int64) (string, map[string]string, error)
}

// Names that are written otherwise in a path, in a query, in XML or in a header.
var odd = []string{
	"odd/a b+c%2Fd.txt",
	"odd/&amp;<x>='\"",
	"odd/ä€😀.txt",
	"odd/(x)!*~_-.,;:@$",
	"odd/q?x=1#y",
	"odd/%41%zz",
	"odd/deep/er/key",
}

var random = rand.New(rand.NewSource(41))

func bytesOf(count int) []byte {
	data := make([]byte, count)
	random.Read(data)
	return data
}

var small = bytesOf(3000)

func same(found, expected []byte, err error) error {
	if err == nil && !bytes.Equal(found, expected) {
		err = fmt.Errorf("%d bytes, not the %d that were put", len(found), len(expected))
	}
	return err
}

func sameKeys(client Client, prefix string, expected []string) error {
	found, err := client.List(prefix)
	if err != nil {
		return err
	}
	expected = append([]string{}, expected...)
	sort.Strings(found)
	sort.Strings(expected)
	if strings.Join(found, "\n") != strings.Join(expected, "\n") {
		return fmt.Errorf("keys below %s are %q, not %q", prefix, found, expected)
	}
	return nil
}

// ask makes one plain request, as somebody makes it who has nothing but a URL.
func ask(method, url, content string, data []byte, status int) ([]byte, error) {
	request, err := http.NewRequest(method, url, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if content != "" {
		request.Header.Set("Content-Type", content)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != status {
		err = fmt.Errorf("%s: %d %.300s, not %d", method, answer.StatusCode, body, status)
	}
	return body, err
}

func list(client Client) error {
	for number, key := range odd {
		if err := client.Put(key, fmt.Appendf(nil, "odd %d", number)); err != nil {
			return err
		}
	}
	if err := sameKeys(client, "odd/", odd); err != nil {
		return err
	}
	for number, key := range odd {
		found, err := client.Get(key)
		if err := same(found, fmt.Appendf(nil, "odd %d", number), err); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func inParts(client Client) error {
	size, err := strconv.Atoi(os.Getenv("MULTIPART_BYTES"))
	if err != nil {
		return err
	}
	data := bytesOf(size)
	digest := sha256.Sum256(data)
	if err := os.WriteFile("big", data, 0o600); err != nil {
		return err
	}
	if err := client.Upload("big", "big"); err != nil {
		return err
	}
	found, err := client.Get("big")
	if err == nil && sha256.Sum256(found) != digest {
		err = fmt.Errorf("%d other bytes came back", len(found))
	}
	return err
}

func deleteMany(client Client) error {
	var keys []string
	for number := range 5 {
		keys = append(keys, fmt.Sprintf("many/%d &+", number))
		if err := client.Put(keys[number], []byte("x")); err != nil {
			return err
		}
	}
	if err := client.DeleteMany(keys); err != nil {
		return err
	}
	return sameKeys(client, "many/", nil)
}

func form(client Client) error {
	url, fields, err := client.Form("form/a b", 4000)
	if err != nil {
		return err
	}
	for size, status := range map[int]int{3000: 204, 4001: 400} {
		var body bytes.Buffer
		writer := multipart.NewWriter(&body)
		for name, value := range fields {
			writer.WriteField(name, value)
		}
		file, err := writer.CreateFormFile("file", "f")
		if err != nil {
			return err
		}
		file.Write(append(append([]byte{}, small...), small...)[:size])
		writer.Close()
		if _, err := ask("POST", url, writer.FormDataContentType(), body.Bytes(), status); err != nil {
			return err
		}
	}
	found, err := client.Get("form/a b")
	return same(found, small, err)
}

// Play does everything with this client, and says what came of it.
func Play(client Client) {
	get := func(key string) error {
		found, err := client.Get(key)
		return same(found, small, err)
	}
	operations := []struct {
		name string
		has  bool
		play func() error
	}{
		{"put", true, func() error { return client.Put("plain", small) }},
		{"get", true, func() error { return get("plain") }},
		{"range", client.GetRange != nil, func() error {
			found, err := client.GetRange("plain", 100, 299)
			return same(found, small[100:300], err)
		}},
		{"list", true, func() error { return list(client) }},
		{"multipart", client.Upload != nil, func() error { return inParts(client) }},
		{"copy", client.Copy != nil, func() error {
			if err := client.Copy("plain", "copies/a b+ä"); err != nil {
				return err
			}
			return get("copies/a b+ä")
		}},
		{"delete-many", client.DeleteMany != nil, func() error { return deleteMany(client) }},
		{"presigned-put", client.PresignPut != nil, func() error {
			url, err := client.PresignPut("presigned/a b+ä")
			if err == nil {
				_, err = ask("PUT", url, "", small, 200)
			}
			if err != nil {
				return err
			}
			return get("presigned/a b+ä")
		}},
		{"presigned-get", client.PresignGet != nil, func() error {
			if err := client.Put("presigned/c d+ö", small); err != nil {
				return err
			}
			url, err := client.PresignGet("presigned/c d+ö")
			if err != nil {
				return err
			}
			found, err := ask("GET", url, "", nil, 200)
			return same(found, small, err)
		}},
		{"form", client.Form != nil, func() error { return form(client) }},
	}
	for _, operation := range operations {
		told := "none: the client has no such thing"
		if operation.has {
			told = "ok"
			if err := operation.play(); err != nil {
				told = "failed: " + strings.Join(strings.Fields(err.Error()), " ")
			}
		}
		fmt.Println(operation.name, told)
	}
}
