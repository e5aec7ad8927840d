import java.io.FileWriter;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.Security;
import java.time.Duration;
import java.util.Arrays;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.shredzone.acme4j.AccountBuilder;
import org.shredzone.acme4j.Session;
import org.shredzone.acme4j.Status;
import org.shredzone.acme4j.challenge.Http01Challenge;
import org.shredzone.acme4j.util.KeyPairUtils;

/** Orders one certificate with acme4j: DIRECTORY ROOT WEBROOT NAME... */
class Main {
    private static final Duration LIMIT = Duration.ofSeconds(60);

    public static void main(String[] words) throws Exception {
        Security.addProvider(new BouncyCastleProvider());
        var session = new Session(URI.create(words[0]));
        var account = new AccountBuilder().agreeToTermsOfService().useKeyPair(KeyPairUtils.createKeyPair()).create(session);
        var order = account.newOrder().domains(Arrays.asList(words).subList(3, words.length)).create();
        for (var authorization : order.getAuthorizations()) {
            if (authorization.getStatus() == Status.VALID) {
                continue;
            }
            var challenge = authorization.findChallenge(Http01Challenge.class).orElseThrow();
            var file = Path.of(words[2], ".well-known/acme-challenge", challenge.getToken());
            Files.writeString(file, challenge.getAuthorization());
            challenge.trigger();
            challenge.waitForCompletion(LIMIT);
        }
        order.waitUntilReady(LIMIT);
        order.execute(KeyPairUtils.createKeyPair());
        order.waitForCompletion(LIMIT);
        try (var out = new FileWriter("certificate.pem")) {
            order.getCertificate().writeCertificate(out);
        }
    }
}
