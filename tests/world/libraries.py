"""ACME libraries of others, each behind a few lines of ours (programs/), which are told the CA's directory, its root, the folder that is
served on port 80, and the names."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from order import Order
from tools import CACHE, PROGRAMS, build, debian, npm_install, pip_install

GO_MODULE = """module world

go 1.26.0

require (
	github.com/go-acme/lego/v5 v5.6.0
	golang.org/x/crypto v0.59.0
)
"""
CRATE = """[package]
name = "world"
version = "0.0.0"
edition = "2024"
publish = false

[dependencies]
instant-acme = { version = "=0.8.5", default-features = false, features = ["hyper-rustls", "rcgen", "ring"] }
rustls = { version = "0.23", default-features = false, features = ["ring", "std", "tls12"] }
rustls-acme = { version = "=0.15.4", default-features = false, features = ["ring", "tls12", "tokio"] }
tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }
tokio-rustls = { version = "0.26", default-features = false, features = ["ring", "tls12"] }
tokio-stream = "0.1"

[profile.dev]
debug = false

[workspace]
"""
MAVEN = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>test.acme</groupId>
  <artifactId>world</artifactId>
  <version>0</version>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""


@dataclass
class Library:
    """A library behind one of programs/, pinned to a version unless it is Debian's. Some know one name for a certificate."""

    file: str
    version: str
    one_name: bool = False

    def command(self, order: Order) -> list:
        """What runs the program, without what it is told."""
        raise NotImplementedError

    def issue(self, order: Order) -> subprocess.CompletedProcess:
        if self.one_name:
            order.names = order.names[:1]
        command = self.command(order)
        return order.run([*command, *order.words], NODE_PATH=str(CACHE / self.folder / "node_modules"))

    @property
    def folder(self) -> str:
        """Its folder in the cache."""
        return self.file.replace(".", "-")


@dataclass
class PythonLibrary(Library):
    """A library of PyPI."""

    package: str = ""

    def install(self) -> str:
        pip_install(self.folder, f"{self.package}=={self.version}")
        return self.version

    def command(self, order: Order) -> list:
        return [str(CACHE / self.folder / "bin/python3"), str(PROGRAMS / self.file)]


@dataclass
class NodeLibrary(Library):
    """A library of npm, with others that its program needs."""

    packages: tuple = ()

    def install(self) -> str:
        npm_install(self.folder, f"{self.packages[0]}@{self.version}", *self.packages[1:])
        return self.version

    def command(self, order: Order) -> list:
        return ["node", str(PROGRAMS / self.file)]


@dataclass
class RubyGem(Library):
    """A gem of Debian."""

    package: str = ""

    def install(self) -> str:
        debian("ruby", "ruby")
        return debian("ruby", self.package)

    def command(self, order: Order) -> list:
        return ["ruby", str(PROGRAMS / self.file)]


class GoLibrary(Library):
    """A library of Go; all that are tried are built together."""

    def install(self) -> str:
        mains = {f"{path.stem}/main.go": path.read_text() for path in (PROGRAMS / name for name in ("lego.go", "xcrypto.go", "autocert.go"))}
        build("go-libraries", {"go.mod": GO_MODULE, **mains}, ["go", "mod", "tidy"], ["go", "build", "-o", "bin/", "./..."])
        return self.version

    def command(self, order: Order) -> list:
        return [str(CACHE / "go-libraries/bin" / Path(self.file).stem)]


class Crate(Library):
    """A library of crates.io; all that are tried are built together."""

    def install(self) -> str:
        mains = {f"src/bin/{path.name}": path.read_text() for path in (PROGRAMS / name for name in ("instant.rs", "rustls.rs"))}
        build("crates", {"Cargo.toml": CRATE, **mains}, ["cargo", "build", "--quiet", "--target-dir", "target"])
        return self.version

    def command(self, order: Order) -> list:
        return [str(CACHE / "crates/target/debug" / Path(self.file).stem)]


@dataclass
class JavaLibrary(Library):
    """A library of Maven Central, with others that it needs and does not bring; the JVM compiles its program by itself."""

    artifacts: tuple = ()

    def install(self) -> str:
        dependencies = ""
        for place in (f"{self.artifacts[0]}:{self.version}", *self.artifacts[1:]):
            group, artifact, version = place.split(":")
            dependencies += (
                f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>\n")
        pom = MAVEN.format(dependencies=dependencies)
        build(self.folder, {"pom.xml": pom}, ["mvn", "--batch-mode", "--quiet", "dependency:copy-dependencies", "-DoutputDirectory=jars"])
        return self.version

    def command(self, order: Order) -> list:
        trust = order.folder / "trust.p12"
        password = "changeit"
        made = ["keytool", "-importcert", "-noprompt", "-alias", "root", "-file", str(order.root), "-keystore", str(trust), "-storepass", password]
        subprocess.run(made, check=True, capture_output=True)
        # A program of one file has to be called so.
        source = order.folder / "Main.java"
        source.write_text((PROGRAMS / self.file).read_text())
        return [
            "java", f"-Djavax.net.ssl.trustStore={trust}", f"-Djavax.net.ssl.trustStorePassword={password}", "-cp",
            str(CACHE / self.folder / "jars/*"), str(source)]


LIBRARIES = {
    "acme (PyPI)": PythonLibrary("acme-order.py", "5.9.0", package="acme"),
    "acmeow (PyPI)": PythonLibrary("acmeow-order.py", "1.2.0", package="acmeow"),
    "aioacme (PyPI)": PythonLibrary("aioacme-order.py", "0.6.0", package="aioacme"),
    "gufo-acme (PyPI)": PythonLibrary("gufo-order.py", "0.7.0", one_name=True, package="gufo-acme"),
    "acme-client (npm)": NodeLibrary("acmeclient.js", "5.4.0", packages=("acme-client",)),
    "@root/acme (npm)": NodeLibrary(
        "rootacme.js", "3.1.0",
        packages=("@root/acme", "@root/csr@0.8.1", "@root/keypairs@0.10.3", "@root/pem@1.0.4", "acme-http-01-webroot@3.0.0")),
    "acme-client (Ruby)": RubyGem("acmeclient.rb", "", package="ruby-acme-client"),
    "lego 5 (Go)": GoLibrary("lego.go", "5.6.0"),
    "x/crypto/acme (Go)": GoLibrary("xcrypto.go", "0.59.0"),
    "autocert (Go)": GoLibrary("autocert.go", "0.59.0", one_name=True),
    "instant-acme (Rust)": Crate("instant.rs", "0.8.5"),
    "rustls-acme (Rust)": Crate("rustls.rs", "0.15.4"),
    "acme4j (Java)": JavaLibrary("acme4j.java", "3.5.1", artifacts=("org.shredzone.acme4j:acme4j-client",)),
    "WildFly Elytron (Java)": JavaLibrary(
        "elytron.java", "2.9.0.Final", artifacts=("org.wildfly.security:wildfly-elytron-x500-cert-acme", "org.eclipse.parsson:parsson:1.1.7")),
}
