import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import software.amazon.awssdk.core.async.AsyncRequestBody;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.Delete;
import software.amazon.awssdk.services.s3.model.ObjectIdentifier;
import software.amazon.awssdk.services.s3.presigner.S3Presigner;
import software.amazon.awssdk.services.s3.S3Configuration;

/** The client AWS SDK for Java 2: what every client of the matrix does (see ../README.md). */
public class Client {
    interface Operation {
        void play() throws Exception;
    }

    static final String BUCKET = System.getenv("BUCKET_NAME");
    static final Duration MINUTES = Duration.ofMinutes(5);
    /** Names that are written otherwise in a path, in a query, in XML or in a header. */
    static final List<String> ODD = List.of("odd/a b+c%2Fd.txt", "odd/&amp;<x>='\"", "odd/ä€😀.txt",
            "odd/(x)!*~_-.,;:@$", "odd/q?x=1#y", "odd/%41%zz", "odd/deep/er/key");

    // Key, region and endpoint come from the environment.
    static final S3Client S3 = S3Client.builder().forcePathStyle(true).build();
    static final S3AsyncClient IN_PARTS = S3AsyncClient.builder().forcePathStyle(true).multipartEnabled(true).build();
    static final S3Presigner PRESIGNER = S3Presigner.builder()
            .serviceConfiguration(S3Configuration.builder().pathStyleAccessEnabled(true).build()).build();
    static final HttpClient PLAIN = HttpClient.newHttpClient();
    static final byte[] SMALL = random(3000);

    static byte[] random(int count) {
        byte[] data = new byte[count];
        new Random(41).nextBytes(data);
        return data;
    }

    static void put(String key, byte[] data) {
        S3.putObject(it -> it.bucket(BUCKET).key(key), RequestBody.fromBytes(data));
    }

    static byte[] get(String key, String range) {
        return S3.getObjectAsBytes(it -> it.bucket(BUCKET).key(key).range(range)).asByteArray();
    }

    static List<String> list(String prefix) {
        List<String> keys = new ArrayList<>();
        S3.listObjectsV2Paginator(it -> it.bucket(BUCKET).prefix(prefix).maxKeys(3)).contents()
                .forEach(object -> keys.add(object.key()));
        Collections.sort(keys);
        return keys;
    }

    static void same(byte[] found, byte[] expected) {
        if (!Arrays.equals(found, expected)) {
            throw new AssertionError(found.length + " bytes, not the " + expected.length + " that were put");
        }
    }

    static void same(List<String> found, List<String> expected) {
        List<String> sorted = new ArrayList<>(expected);
        Collections.sort(sorted);
        if (!found.equals(sorted)) {
            throw new AssertionError("keys " + found + ", not " + sorted);
        }
    }

    static byte[] ask(HttpRequest.Builder request) throws Exception {
        var answer = PLAIN.send(request.build(), BodyHandlers.ofByteArray());
        if (answer.statusCode() != 200) {
            throw new AssertionError(answer.statusCode() + " " + new String(answer.body(), StandardCharsets.UTF_8));
        }
        return answer.body();
    }

    static void list() {
        for (int number = 0; number < ODD.size(); number++) {
            put(ODD.get(number), ("odd " + number).getBytes());
        }
        same(list("odd/"), ODD);
        for (int number = 0; number < ODD.size(); number++) {
            same(get(ODD.get(number), null), ("odd " + number).getBytes());
        }
    }

    static void multipart() throws Exception {
        byte[] data = random(Integer.parseInt(System.getenv("MULTIPART_BYTES")));
        Files.write(Path.of("big"), data);
        IN_PARTS.putObject(it -> it.bucket(BUCKET).key("big"), AsyncRequestBody.fromFile(Path.of("big"))).join();
        same(get("big", null), data);
    }

    static void deleteMany() {
        List<String> keys = List.of("many/0 &+", "many/1 &+", "many/2 &+", "many/3 &+", "many/4 &+");
        keys.forEach(key -> put(key, new byte[1]));
        var objects = keys.stream().map(key -> ObjectIdentifier.builder().key(key).build()).toList();
        var answer = S3.deleteObjects(it -> it.bucket(BUCKET).delete(Delete.builder().objects(objects).build()));
        if (answer.deleted().size() != keys.size()) {
            throw new AssertionError(answer.deleted().size() + " are told as deleted");
        }
        same(list("many/"), List.of());
    }

    static void say(String name, Operation operation) {
        String told = "ok";
        try {
            operation.play();
        } catch (Throwable why) {
            why.printStackTrace();
            told = "failed: " + why;
        }
        System.out.println(name + " " + told.replaceAll("\\s+", " "));
    }

    public static void main(String[] arguments) {
        say("put", () -> put("plain", SMALL));
        say("get", () -> same(get("plain", null), SMALL));
        say("range", () -> same(get("plain", "bytes=100-299"), Arrays.copyOfRange(SMALL, 100, 300)));
        say("list", Client::list);
        say("multipart", Client::multipart);
        say("copy", () -> {
            S3.copyObject(it -> it.sourceBucket(BUCKET).sourceKey("plain").destinationBucket(BUCKET)
                    .destinationKey("copies/a b+ä"));
            same(get("copies/a b+ä", null), SMALL);
        });
        say("delete-many", Client::deleteMany);
        say("presigned-put", () -> {
            String key = "presigned/a b+ä";
            var url = PRESIGNER.presignPutObject(it -> it.signatureDuration(MINUTES)
                    .putObjectRequest(put -> put.bucket(BUCKET).key(key))).url();
            ask(HttpRequest.newBuilder(URI.create(url.toString())).PUT(BodyPublishers.ofByteArray(SMALL)));
            same(get(key, null), SMALL);
        });
        say("presigned-get", () -> {
            String key = "presigned/c d+ö";
            put(key, SMALL);
            var url = PRESIGNER.presignGetObject(it -> it.signatureDuration(MINUTES)
                    .getObjectRequest(get -> get.bucket(BUCKET).key(key))).url();
            same(ask(HttpRequest.newBuilder(URI.create(url.toString())).GET()), SMALL);
        });
        System.out.println("form none: the client makes no forms");
        System.exit(0);
    }
}
