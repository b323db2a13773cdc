// The client AWS SDK for JavaScript 3: what every client of the matrix does (see ../README.md).

import { createHash, randomBytes } from "node:crypto";
import { createReadStream, writeFileSync } from "node:fs";
import { S3Client, PutObjectCommand, GetObjectCommand, CopyObjectCommand, DeleteObjectsCommand, paginateListObjectsV2 } from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { createPresignedPost } from "@aws-sdk/s3-presigned-post";

const Bucket = process.env.BUCKET_NAME;
// Key, region, endpoint and authority come from the environment.
const s3 = new S3Client({ forcePathStyle: true });
const small = randomBytes(3000);
// Names that are written otherwise in a path, in a query, in XML or in a header.
const odd = ["odd/a b+c%2Fd.txt", "odd/&amp;<x>='\"", "odd/ä€😀.txt", "odd/(x)!*~_-.,;:@$", "odd/q?x=1#y", "odd/%41%zz", "odd/deep/er/key"];

const put = (Key, Body) => s3.send(new PutObjectCommand({ Bucket, Key, Body }));
const get = async (Key, Range) => Buffer.from(await (await s3.send(new GetObjectCommand({ Bucket, Key, Range }))).Body.transformToByteArray());

async function list(Prefix) {
  const keys = [];
  for await (const page of paginateListObjectsV2({ client: s3, pageSize: 3 }, { Bucket, Prefix })) {
    keys.push(...(page.Contents ?? []).map((object) => object.Key));
  }
  return keys.sort();
}

function same(found, expected) {
  const equal = Buffer.isBuffer(expected) ? expected.equals(found) : JSON.stringify(found) === JSON.stringify(expected);
  if (!equal) throw new Error(`found ${Buffer.isBuffer(found) ? found.length + " bytes" : JSON.stringify(found)}`);
}

async function ask(url, status, options) {
  const answer = await fetch(url, options);
  const body = Buffer.from(await answer.arrayBuffer());
  if (answer.status !== status) throw new Error(`${answer.status} ${body.subarray(0, 300)}, not ${status}`);
  return body;
}

const operations = {
  put: () => put("plain", small),
  get: async () => same(await get("plain"), small),
  range: async () => same(await get("plain", "bytes=100-299"), small.subarray(100, 300)),
  list: async () => {
    for (const [number, key] of odd.entries()) await put(key, `odd ${number}`);
    same(await list("odd/"), [...odd].sort());
    for (const [number, key] of odd.entries()) same(await get(key), Buffer.from(`odd ${number}`));
  },
  multipart: async () => {
    const data = randomBytes(Number(process.env.MULTIPART_BYTES));
    writeFileSync("big", data);
    await new Upload({ client: s3, params: { Bucket, Key: "big", Body: createReadStream("big") } }).done();
    const digest = (it) => createHash("sha256").update(it).digest("hex");
    same(digest(await get("big")), digest(data));
  },
  copy: async () => {
    // The SDK leaves the encoding of the source to who calls it.
    await s3.send(new CopyObjectCommand({ Bucket, Key: "copies/a b+ä", CopySource: encodeURI(`${Bucket}/plain`) }));
    same(await get("copies/a b+ä"), small);
  },
  "delete-many": async () => {
    const keys = [0, 1, 2, 3, 4].map((number) => `many/${number} &+`);
    for (const key of keys) await put(key, "x");
    const answer = await s3.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: keys.map((Key) => ({ Key })) } }));
    same(answer.Deleted.map((object) => object.Key).sort(), keys);
    same(await list("many/"), []);
  },
  "presigned-put": async () => {
    const Key = "presigned/a b+ä";
    await ask(await getSignedUrl(s3, new PutObjectCommand({ Bucket, Key }), { expiresIn: 300 }), 200, { method: "PUT", body: small });
    same(await get(Key), small);
  },
  "presigned-get": async () => {
    const Key = "presigned/c d+ö";
    await put(Key, small);
    same(await ask(await getSignedUrl(s3, new GetObjectCommand({ Bucket, Key }), { expiresIn: 300 }), 200), small);
  },
  form: async () => {
    const Key = "form/a b";
    const Conditions = [["content-length-range", 1, 4000]];
    const { url, fields } = await createPresignedPost(s3, { Bucket, Key, Conditions, Expires: 300 });
    for (const [size, status] of [[3000, 204], [4001, 400]]) {
      const body = new FormData();
      for (const [name, value] of Object.entries(fields)) body.append(name, value);
      body.append("file", new Blob([Buffer.concat([small, small]).subarray(0, size)]), "f");
      await ask(url, status, { method: "POST", body });
    }
    same(await get(Key), small);
  },
};

for (const [name, operation] of Object.entries(operations)) {
  let told = "ok";
  try {
    await operation();
  } catch (why) {
    console.error(why);
    told = `failed: ${why}`;
  }
  console.log(name, told.split(/\s+/).join(" "));
}
