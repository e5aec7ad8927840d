import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import org.wildfly.security.x500.cert.acme.AcmeAccount;
import org.wildfly.security.x500.cert.acme.AcmeChallenge;
import org.wildfly.security.x500.cert.acme.AcmeClientSpi;
import org.wildfly.security.x500.cert.acme.AcmeException;

/** Orders one certificate with WildFly Elytron: DIRECTORY ROOT WEBROOT NAME... */
class Main extends AcmeClientSpi {
    private final Path folder;

    Main(String webroot) {
        folder = Path.of(webroot, ".well-known/acme-challenge");
    }

    @Override
    public AcmeChallenge proveIdentifierControl(AcmeAccount account, List<AcmeChallenge> challenges) throws AcmeException {
        for (var challenge : challenges) {
            if (challenge.getType() == AcmeChallenge.Type.HTTP_01) {
                try {
                    Files.writeString(folder.resolve(challenge.getToken()), challenge.getKeyAuthorization(account));
                } catch (java.io.IOException error) {
                    throw new AcmeException(error);
                }
                return challenge;
            }
        }
        throw new AcmeException("there is no http-01");
    }

    @Override
    public void cleanupAfterChallenge(AcmeAccount account, AcmeChallenge challenge) {}

    public static void main(String[] words) throws Exception {
        var account = AcmeAccount.builder().setServerUrl(words[0]).setTermsOfServiceAgreed(true).build();
        var names = Arrays.copyOfRange(words, 3, words.length);
        var client = new Main(words[2]);
        client.createAccount(account, false);
        var made = client.obtainCertificateChain(account, false, names);
        var text = new StringBuilder();
        for (var certificate : made.getCertificateChain()) {
            var lines = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(certificate.getEncoded());
            text.append("-----BEGIN CERTIFICATE-----\n").append(lines).append("\n-----END CERTIFICATE-----\n");
        }
        Files.writeString(Path.of("certificate.pem"), text);
    }
}
