// The client minio-go.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"matrix"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

func main() {
	endpoint, err := url.Parse(matrix.Endpoint)
	check(err)
	// Its region it asks the gateway for. The default transport believes the authorities of SSL_CERT_FILE.
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds:     credentials.NewStaticV4(matrix.KeyID, matrix.Secret, ""),
		Secure:    endpoint.Scheme == "https",
		Transport: http.DefaultTransport,
	})
	check(err)
	ctx := context.Background()
	get := func(key string, options minio.GetObjectOptions) ([]byte, error) {
		object, err := client.GetObject(ctx, matrix.Bucket, key, options)
		if err != nil {
			return nil, err
		}
		defer object.Close()
		return io.ReadAll(object)
	}
	matrix.Play(matrix.Client{
		Put: func(key string, data []byte) error {
			_, err := client.PutObject(ctx, matrix.Bucket, key, bytes.NewReader(data), int64(len(data)), minio.PutObjectOptions{})
			return err
		},
		Get: func(key string) ([]byte, error) { return get(key, minio.GetObjectOptions{}) },
		GetRange: func(key string, first, last int64) ([]byte, error) {
			var options minio.GetObjectOptions
			if err := options.SetRange(first, last); err != nil {
				return nil, err
			}
			return get(key, options)
		},
		List: func(prefix string) ([]string, error) {
			var keys []string
			for object := range client.ListObjects(ctx, matrix.Bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true, MaxKeys: 3}) {
				if object.Err != nil {
					return nil, object.Err
				}
				keys = append(keys, object.Key)
			}
			return keys, nil
		},
		Upload: func(path, key string) error {
			_, err := client.FPutObject(ctx, matrix.Bucket, key, path, minio.PutObjectOptions{PartSize: 10 << 20})
			return err
		},
		Copy: func(source, key string) error {
			_, err := client.CopyObject(ctx, minio.CopyDestOptions{Bucket: matrix.Bucket, Object: key}, minio.CopySrcOptions{Bucket: matrix.Bucket, Object: source})
			return err
		},
		DeleteMany: func(keys []string) error {
			objects := make(chan minio.ObjectInfo, len(keys))
			for _, key := range keys {
				objects <- minio.ObjectInfo{Key: key}
			}
			close(objects)
			for failed := range client.RemoveObjects(ctx, matrix.Bucket, objects, minio.RemoveObjectsOptions{}) {
				return failed.Err
			}
			return nil
		},
		PresignPut: func(key string) (string, error) {
			return text(client.PresignedPutObject(ctx, matrix.Bucket, key, 5*time.Minute))
		},
		PresignGet: func(key string) (string, error) {
			return text(client.PresignedGetObject(ctx, matrix.Bucket, key, 5*time.Minute, nil))
		},
		Form: func(key string, most int64) (string, map[string]string, error) {
			policy := minio.NewPostPolicy()
			policy.SetBucket(matrix.Bucket)
			policy.SetKey(key)
			policy.SetExpires(time.Now().UTC().Add(5 * time.Minute))
			policy.SetContentLengthRange(1, most)
			url, fields, err := client.PresignedPostPolicy(ctx, policy)
			told, err := text(url, err)
			return told, fields, err
		},
	})
}

func text(url *url.URL, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return url.String(), nil
}

func check(err error) {
	if err != nil {
		panic(fmt.Sprint(err))
	}
}
