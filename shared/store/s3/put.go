package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"hash"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/awscall"
)

const (
	// partBytes is the size of a part, and the size above which an upload has
	// parts: one part in memory at a time.
	partBytes = 16 << 20
	// maxBytes is the largest object: what a presigned put can upload too.
	maxBytes = 5 << 30
)

// errBody is a body that is not the announced one.
var errBody = errors.New("the body is not what was announced")

// Put is in the port.
func (b *Bucket) Put(ctx context.Context, in store.PutObject) (store.ObjectMeta, error) {
	ctx, call, err := awscall.Begin(ctx, b.clock, awscall.Call{Name: "put_object", Key: in.Key, Write: true, ValidatedAt: in.ValidatedAt})
	if err != nil {
		return store.ObjectMeta{}, err
	}
	switch {
	case in.Bytes > maxBytes:
		return store.ObjectMeta{}, call.Refuse(store.TooLarge, "ObjectSize")
	case in.Key == "" || in.Bytes < 0 || in.Body == nil:
		return store.ObjectMeta{}, call.Refuse(store.Invalid, "Form")
	case in.Bytes > partBytes:
		err = b.putParts(ctx, call, in)
	default:
		err = b.putWhole(ctx, call, in)
	}
	return meta(call), err
}

// putWhole creates an object with one request. Lost: nothing there. Landed but
// the answer was lost: the repeat ends with Exists.
func (b *Bucket) putWhole(ctx context.Context, call *awscall.Call, in store.PutObject) error {
	body, err := readExactly(in.Body, in.Bytes)
	if err != nil || sha256.Sum256(body) != in.SHA256 {
		return call.Refuse(store.Invalid, "BodyDigest")
	}
	sse, kmsKey := encryption(in.KMSKey)
	req := &s3.PutObjectInput{
		Bucket: &b.name, Key: &in.Key, IfNoneMatch: aws.String("*"),
		ContentLength: &in.Bytes, ContentType: mediaType(in.MediaType),
		ChecksumSHA256:       aws.String(base64.StdEncoding.EncodeToString(in.SHA256[:])),
		ServerSideEncryption: sse, SSEKMSKeyId: kmsKey,
		StorageClass: types.StorageClass(in.StorageClass), Tagging: tagging(in), Metadata: in.Metadata,
	}
	return repeat(ctx, call, func() error {
		req.Body = bytes.NewReader(body)
		_, err := b.client.PutObject(ctx, req)
		return err
	})
}

// repeat makes a put until no other one is at work on the same key, after
// which the condition decides.
func repeat(ctx context.Context, call *awscall.Call, do func() error) error {
	for round := 1; ; round++ {
		err := do()
		if err == nil {
			return nil
		}
		if awscall.Classify(err).Kind != store.Conflict || round == maxRounds || !awscall.Sleep(ctx, awscall.Backoff(round)) {
			return call.Fail(err)
		}
		if late := call.CheckWindow(); late != nil {
			return late
		}
	}
}

// putParts creates an object by a multipart upload. Only its completion makes
// the object, so only that is conditional, pinned to the validation, and can be
// ambiguous. A crash before it leaves an upload that shows nowhere but in
// Uploads; the bucket's lifecycle removes it. The completion landed but its
// answer was lost: the SDK's repeat ends with Exists, or NoSuchUpload, which is
// then an unknown outcome like the lost answer.
func (b *Bucket) putParts(ctx context.Context, call *awscall.Call, in store.PutObject) error {
	up, parts, err := b.sendParts(ctx, call, in)
	if err == nil {
		err = call.CheckWindow()
	}
	if err == nil {
		err = repeat(ctx, call, func() error {
			_, err := b.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
				Bucket: &b.name, Key: &in.Key, UploadId: &up, IfNoneMatch: aws.String("*"),
				MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
			})
			return err
		})
	}
	if err != nil && up != "" && !store.Ambiguous(err) {
		b.abandon(ctx, in.Key, up)
	}
	return err
}

// sendParts begins an upload and sends its parts.
func (b *Bucket) sendParts(ctx context.Context, whole *awscall.Call, in store.PutObject) (upload string, done []types.CompletedPart, err error) {
	ctx, call, err := awscall.Begin(ctx, b.clock, awscall.Call{Name: whole.Name, Key: whole.Key})
	if err != nil {
		return "", nil, err
	}
	defer func() { whole.Count(call) }()
	sse, kmsKey := encryption(in.KMSKey)
	up, err := b.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &b.name, Key: &in.Key, ContentType: mediaType(in.MediaType),
		ChecksumAlgorithm: types.ChecksumAlgorithmSha256, ChecksumType: types.ChecksumTypeComposite,
		ServerSideEncryption: sse, SSEKMSKeyId: kmsKey,
		StorageClass: types.StorageClass(in.StorageClass), Tagging: tagging(in), Metadata: in.Metadata,
	})
	if err != nil {
		return "", nil, call.Fail(err)
	}
	next, stop := readParts(in)
	defer stop()
	for p := range next {
		if p.err != nil {
			return *up.UploadId, nil, call.Refuse(store.Invalid, "BodyDigest")
		}
		number, n := aws.Int32(int32(len(done)+1)), int64(len(p.bytes))
		out, err := b.client.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: &b.name, Key: &in.Key, UploadId: up.UploadId, PartNumber: number,
			Body: bytes.NewReader(p.bytes), ContentLength: &n,
			ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(p.sum[:])),
		})
		if err != nil {
			return *up.UploadId, nil, call.Fail(err)
		}
		done = append(done, types.CompletedPart{ETag: out.ETag, PartNumber: number, ChecksumSHA256: out.ChecksumSHA256})
		p.done()
	}
	return *up.UploadId, done, nil
}

// part is a piece of a body with its digest. done gives its buffer back; err:
// the body is not what was announced.
type part struct {
	bytes []byte
	sum   [32]byte
	err   error
	done  func()
}

// readParts reads and hashes the next part while one is sent: two buffers in
// all. The last part comes only when the whole body has the digest that was
// announced. stop ends the reading; the body is not touched after it returns.
func readParts(in store.PutObject) (parts <-chan part, stop func()) {
	out, free, quit, ended := make(chan part), make(chan []byte, 2), make(chan struct{}), make(chan struct{})
	free <- make([]byte, min(in.Bytes, partBytes))
	free <- make([]byte, min(in.Bytes, partBytes))
	go func() {
		defer close(ended)
		defer close(out)
		whole := sha256.New()
		for left := in.Bytes; left > 0; {
			var buf []byte
			select {
			case buf = <-free:
			case <-quit:
				return
			}
			n := min(left, partBytes)
			p := part{bytes: buf[:n], done: func() { free <- buf }}
			p.err = fill(in.Body, p.bytes, left == n, whole)
			if p.sum = sha256.Sum256(p.bytes); left == n && p.err == nil && [32]byte(whole.Sum(nil)) != in.SHA256 {
				p.err = errBody
			}
			select {
			case out <- p:
			case <-quit:
				return
			}
			if left -= n; p.err != nil {
				return
			}
		}
	}()
	return out, func() { close(quit); <-ended }
}

// abandon ends a failed upload, also when the caller's context has ended. What
// it cannot end the bucket's lifecycle does.
func (b *Bucket) abandon(ctx context.Context, key, uploadID string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, _ = b.Abort(ctx, store.Upload{Key: key, UploadID: uploadID})
}

// fill reads one part and, after the last one, sees that nothing follows.
func fill(r io.Reader, buf []byte, last bool, whole hash.Hash) error {
	if _, err := io.ReadFull(r, buf); err != nil {
		return errBody
	}
	whole.Write(buf)
	if !last {
		return nil
	}
	return atEnd(r)
}

func readExactly(r io.Reader, n int64) ([]byte, error) {
	buf := make([]byte, n)
	if _, err := io.ReadFull(r, buf); err != nil {
		return nil, errBody
	}
	return buf, atEnd(r)
}

func atEnd(r io.Reader) error {
	if n, _ := io.ReadFull(r, make([]byte, 1)); n > 0 {
		return errBody
	}
	return nil
}

func tagging(in store.PutObject) *string {
	if !in.ExpiresTag {
		return nil
	}
	return aws.String(ExpiresTagKey + "=" + ExpiresTagValue)
}
