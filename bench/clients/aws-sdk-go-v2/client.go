// The client aws-sdk-go-v2.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"matrix"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/s3/manager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

func main() {
	ctx := context.Background()
	// Key, region, endpoint and authority come from the environment.
	settings, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		panic(err)
	}
	client := s3.NewFromConfig(settings, func(options *s3.Options) { options.UsePathStyle = true })
	presigner := s3.NewPresignClient(client, s3.WithPresignExpires(5*time.Minute))
	bucket := aws.String(matrix.Bucket)
	get := func(key, bytes string) ([]byte, error) {
		asked := &s3.GetObjectInput{Bucket: bucket, Key: &key}
		if bytes != "" {
			asked.Range = &bytes
		}
		answer, err := client.GetObject(ctx, asked)
		if err != nil {
			return nil, err
		}
		defer answer.Body.Close()
		return io.ReadAll(answer.Body)
	}
	matrix.Play(matrix.Client{
		Put: func(key string, data []byte) error {
			_, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: &key, Body: bytes.NewReader(data)})
			return err
		},
		Get: func(key string) ([]byte, error) { return get(key, "") },
		GetRange: func(key string, first, last int64) ([]byte, error) {
			return get(key, fmt.Sprintf("bytes=%d-%d", first, last))
		},
		List: func(prefix string) ([]string, error) {
			var keys []string
			pages := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: bucket, Prefix: &prefix, MaxKeys: aws.Int32(3)})
			for pages.HasMorePages() {
				page, err := pages.NextPage(ctx)
				if err != nil {
					return nil, err
				}
				for _, object := range page.Contents {
					keys = append(keys, *object.Key)
				}
			}
			return keys, nil
		},
		Upload: func(path, key string) error {
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			defer file.Close()
			_, err = manager.NewUploader(client).Upload(ctx, &s3.PutObjectInput{Bucket: bucket, Key: &key, Body: file})
			return err
		},
		Copy: func(source, key string) error {
			// The SDK leaves the encoding of the source to who calls it.
			from := url.PathEscape(matrix.Bucket + "/" + source)
			_, err := client.CopyObject(ctx, &s3.CopyObjectInput{Bucket: bucket, Key: &key, CopySource: &from})
			return err
		},
		DeleteMany: func(keys []string) error {
			var objects []types.ObjectIdentifier
			for _, key := range keys {
				objects = append(objects, types.ObjectIdentifier{Key: aws.String(key)})
			}
			answer, err := client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: bucket, Delete: &types.Delete{Objects: objects}})
			if err == nil && len(answer.Deleted) != len(keys) {
				err = fmt.Errorf("%d of %d are told as deleted", len(answer.Deleted), len(keys))
			}
			return err
		},
		PresignPut: func(key string) (string, error) {
			request, err := presigner.PresignPutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: &key})
			if err != nil {
				return "", err
			}
			return request.URL, nil
		},
		PresignGet: func(key string) (string, error) {
			request, err := presigner.PresignGetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: &key})
			if err != nil {
				return "", err
			}
			return request.URL, nil
		},
		Form: func(key string, most int64) (string, map[string]string, error) {
			request, err := presigner.PresignPostObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: &key}, func(options *s3.PresignPostOptions) {
				options.Expires = 5 * time.Minute
				options.Conditions = []any{[]any{"content-length-range", 1, most}}
			})
			if err != nil {
				return "", nil, err
			}
			return request.URL, request.Values, nil
		},
	})
}
