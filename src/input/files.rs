//! Inputs that `-f` names: files, folders and standard input, read as text.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::hints::invocation::{self, quoted};
use crate::model::manifest::Source;
use crate::model::seal::Seal;

/// Name of standard input in messages.
const STDIN: &str = "stdin";
/// Largest file that is read, in bytes; far above any manifest, far below the memory of a machine.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Extensions of the files that are read from a folder; a file that `-f` names itself may have any name.
pub const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];

/// Whether folders within folders are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The files of the folder alone.
    Flat,
    /// Everything below (`-R`).
    Recursive,
}

/// Reason why an input that `-f` names cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system refuses to read the input.
    #[error("cannot read {name}: {}", reason(.source))]
    Unreadable {
        /// Name as given, or as found in a folder.
        name: String,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A folder without manifests.
    #[error("cannot read {name}: there is no .json, .yaml or .yml file in this folder")]
    EmptyFolder {
        /// Name as given.
        name: String,
    },
    /// File that has to be decrypted or fetched first.
    #[error("cannot read {name}: {}", .seal.deed())]
    Sealed {
        /// Name as given, or as found in a folder.
        name: String,
        /// Program that sealed the file.
        seal: Seal,
    },
    /// Bytes that are not text.
    #[error("cannot read {name}: line {line} is not UTF-8 text")]
    NotText {
        /// Name as given, or as found in a folder.
        name: String,
        /// Line, counted from 1.
        line: usize,
    },
    /// Empty file.
    #[error("cannot read {name}: it is empty")]
    Empty {
        /// Name as given, or as found in a folder.
        name: String,
    },
    /// Too large to be a manifest.
    #[error("cannot read {name}: it is larger than 64 MiB")]
    TooLarge {
        /// Name as given, or as found in a folder.
        name: String,
    },
    /// A URL.
    #[error("cannot read {url}: manifests are read from files only")]
    Url {
        /// Name as given.
        url: String,
    },
    /// `-` more than once.
    #[error("cannot read standard input twice")]
    StdinTwice,
}

impl FileError {
    /// Returns the hint against the error, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Url { url } => Some(format!(
                "download the manifest, read it, then give the file: curl -fsSLO {url}"
            )),
            Self::NotText { .. } => Some("save the file as UTF-8".to_owned()),
            Self::EmptyFolder { .. } => Some("-R reads the folders below, too".to_owned()),
            Self::Sealed { name, seal } => Some(opening(*seal, name)),
            Self::Empty { .. } => Some("write a manifest into the file, or remove it".to_owned()),
            Self::Unreadable { .. } | Self::TooLarge { .. } | Self::StdinTwice => None,
        }
    }
}

/// Returns the hint with the command that opens a sealed file and passes it on.
pub fn opening(seal: Seal, name: &str) -> String {
    let file = if name == STDIN { "FILE".to_owned() } else { quoted(name) };
    let open = match seal {
        Seal::GitCrypt => return "unlock it in place: git-crypt unlock".to_owned(),
        Seal::GitLfs => return "fetch it: git lfs pull".to_owned(),
        Seal::Age => "age -d -i KEYFILE",
        Seal::AnsibleVault => "ansible-vault view",
        Seal::OpenSsl => "openssl enc -d -aes-256-cbc -pbkdf2 -in",
        Seal::Pgp => "gpg -d",
        Seal::Sops => "sops -d",
    };
    let order = invocation::current().like("order -f -");
    format!("decrypt it in a pipe, so that no clear text stays on disk: {open} {file} | {order}")
}

/// Reads all named inputs in the given order; the files of a folder by name, as kubectl does.
///
/// # Errors
/// Fails with everything that cannot be read.
pub fn read(
    paths: &[String],
    depth: Depth,
    stdin: &mut dyn Read,
) -> Result<Vec<Source>, Vec<FileError>> {
    let (mut sources, mut errors) = (Vec::new(), Vec::new());
    let mut stdin = Some(stdin);
    for path in paths {
        let read = if path == "-" {
            match stdin.take() {
                Some(input) => read_text(input, STDIN.to_owned()).map(|source| vec![source]),
                None => Err(FileError::StdinTwice),
            }
        } else {
            read_path(path, depth)
        };
        match read {
            Ok(read) => sources.extend(read),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(sources) } else { Err(errors) }
}

fn read_path(name: &str, depth: Depth) -> Result<Vec<Source>, FileError> {
    if name.starts_with("http://") || name.starts_with("https://") {
        return Err(FileError::Url { url: name.to_owned() });
    }
    let path = Path::new(name);
    let metadata = fs::metadata(path).map_err(|source| unreadable(path, source))?;
    if !metadata.is_dir() {
        return Ok(vec![read_file(path)?]);
    }
    let mut files = Vec::new();
    find_files(path, depth, &mut files)?;
    if files.is_empty() {
        return Err(FileError::EmptyFolder { name: name.to_owned() });
    }
    files.iter().map(|file| read_file(file)).collect()
}

/// Finds the manifests of a folder. Links to files are followed, links to folders are not, so that the search ends.
fn find_files(folder: &Path, depth: Depth, files: &mut Vec<PathBuf>) -> Result<(), FileError> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut entries = entries.map_err(|source| unreadable(folder, source))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let kind = entry.file_type().map_err(|source| unreadable(&path, source))?;
        // In a mounted ConfigMap or Secret, links lead to the files of its present version, in a folder of this sort.
        if entry.file_name().to_string_lossy().starts_with("..") {
            continue;
        }
        if kind.is_dir() {
            if depth == Depth::Recursive {
                find_files(&path, depth, files)?;
            }
            continue;
        }
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
        // The target of a link counts; an error is reported when the file is read.
        let folder = fs::metadata(&path).is_ok_and(|metadata| metadata.is_dir());
        if EXTENSIONS.contains(&extension) && !folder {
            files.push(path);
        }
    }
    Ok(())
}

fn read_file(path: &Path) -> Result<Source, FileError> {
    let mut file = fs::File::open(path).map_err(|source| unreadable(path, source))?;
    read_text(&mut file, path.display().to_string())
}

fn read_text(input: &mut dyn Read, name: String) -> Result<Source, FileError> {
    let mut bytes = Vec::new();
    if let Err(source) = input.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes) {
        return Err(FileError::Unreadable { name, source });
    }
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE_BYTES) {
        return Err(FileError::TooLarge { name });
    }
    if let Some(seal) = Seal::of_file(&bytes) {
        return Err(FileError::Sealed { name, seal });
    }
    match String::from_utf8(bytes) {
        Ok(text) if text.trim().is_empty() => Err(FileError::Empty { name }),
        Ok(text) => Ok(Source { name, text }),
        Err(error) => {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.split(|byte| *byte == b'\n').count();
            Err(FileError::NotText { name, line })
        }
    }
}

fn unreadable(path: &Path, source: std::io::Error) -> FileError {
    FileError::Unreadable { name: path.display().to_string(), source }
}

/// Describes an error of the system, the usual ones without their number.
pub fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file or folder".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::manifest;
    use crate::model::manifest::set::Namespaces;

    /// Returns the names of the files that are read from paths below a folder with a few files, or the errors.
    fn check(paths: &[&str], depth: Depth) -> String {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (name, bytes) in [
            ("b.yaml", &b"b: 1"[..]),
            ("a.yml", b"a: 1"),
            ("c.json", b"{}"),
            ("notes.txt", b"not read, unless named"),
            ("sub/d.yaml", b"d: 1"),
            ("none/readme", b""),
            ("mounted/..2026_11_28_03_00_00.1/g.yaml", b"g: 1"),
            ("vault", b"\xef\xbb\xbf$ANSIBLE_VAULT;1.1;AES256\n6162"),
            ("age", b"-----BEGIN AGE ENCRYPTED FILE-----\nYWdl"),
            ("age.bin", b"age-encryption.org/v1\n-> X25519 \xff"),
            ("pgp", b"\n-----BEGIN PGP MESSAGE-----\n"),
            ("crypt", b"\0GITCRYPT\0\xff\xfe"),
            ("lfs", b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n"),
            ("salted", b"Salted__\xff"),
            ("bad", b"a: 1\nb: \xff\n"),
            ("utf16", b"\xff\xfea\0"),
            ("blank", b" \n\n"),
        ] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), bytes).unwrap();
        }
        for (target, link) in [
            ("..2026_11_28_03_00_00.1", "mounted/..data"),
            ("..data/g.yaml", "mounted/g.yaml"),
            ("b.yaml", "e.yaml"),
        ] {
            std::os::unix::fs::symlink(target, root.join(link)).unwrap();
        }
        std::os::unix::fs::symlink(".", root.join("f.yaml")).unwrap();
        let below = |path: &&str| match *path {
            "-" => "-".to_owned(),
            url if url.starts_with("https:") => url.to_owned(),
            path => root.join(path).display().to_string(),
        };
        let paths: Vec<String> = paths.iter().map(below).collect();
        let said = match read(&paths, depth, &mut &b"input"[..]) {
            Ok(sources) => sources.into_iter().map(|s| s.name).collect::<Vec<_>>().join(" "),
            Err(errors) => errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        };
        said.replace(&format!("{}/", root.display()), "")
    }

    #[test]
    fn files_folders_and_stdin_are_read_in_order() {
        assert_eq!(check(&["notes.txt", "-", "a.yml"], Depth::Flat), "notes.txt stdin a.yml");
        assert_eq!(check(&["."], Depth::Flat).replace("./", ""), "a.yml b.yaml c.json e.yaml");
        assert_eq!(
            check(&["."], Depth::Recursive).replace("./", ""),
            "a.yml b.yaml c.json e.yaml mounted/g.yaml sub/d.yaml"
        );
        assert_eq!(check(&["mounted"], Depth::Recursive), "mounted/g.yaml", "each object once");
    }

    #[test]
    fn everything_that_cannot_be_read_is_told() {
        assert_eq!(
            check(
                &[
                    "-",
                    "missing.yaml",
                    "none",
                    "blank",
                    "bad",
                    "utf16",
                    "-",
                    "https://a.example/m.yaml"
                ],
                Depth::Flat
            ),
            "cannot read missing.yaml: there is no such file or folder
cannot read none: there is no .json, .yaml or .yml file in this folder
cannot read blank: it is empty
cannot read bad: line 2 is not UTF-8 text
cannot read utf16: line 1 is not UTF-8 text
cannot read standard input twice
cannot read https://a.example/m.yaml: manifests are read from files only"
        );
    }

    #[test]
    fn what_is_encrypted_is_named() {
        for (file, by) in [
            ("vault", "it is encrypted by Ansible Vault"),
            ("age", "it is encrypted by age"),
            ("age.bin", "it is encrypted by age"),
            ("pgp", "it is encrypted by PGP"),
            ("crypt", "it is encrypted by git-crypt"),
            ("lfs", "it is a pointer of Git LFS, in place of the file"),
            ("salted", "it is encrypted by openssl enc"),
        ] {
            assert_eq!(check(&[file], Depth::Flat), format!("cannot read {file}: {by}"));
        }
        let hint = opening(Seal::AnsibleVault, "a b.yaml");
        assert!(hint.contains("ansible-vault view 'a b.yaml' | "), "{hint}");
        assert!(hint.ends_with(" order -f -"), "{hint}");
    }

    #[test]
    fn a_url_is_refused_with_a_way_out() {
        let error = FileError::Url { url: "https://a.example/m.yaml".into() };
        assert_eq!(
            error.hint().as_deref(),
            Some(
                "download the manifest, read it, then give the file: curl -fsSLO https://a.example/m.yaml"
            )
        );
    }

    #[test]
    fn endless_input_is_not_read_to_its_end() {
        let errors = read(&["-".into()], Depth::Flat, &mut std::io::repeat(b'a')).unwrap_err();
        assert_eq!(errors[0].to_string(), "cannot read stdin: it is larger than 64 MiB");
    }

    /// cert-manager's providers, as `dns01` names them.
    const PROVIDERS: [&str; 9] = [
        "acmeDNS",
        "akamai",
        "azureDNS",
        "cloudDNS",
        "cloudflare",
        "digitalocean",
        "rfc2136",
        "route53",
        "webhook",
    ];

    #[test]
    fn the_examples_have_nothing_to_complain_about() {
        let other = [
            ("challenge-types", 7),
            ("http01-single", 2),
            ("two-issuers", 4),
            ("dns01-wildcard", 3),
            ("dns01-manual", 2),
            ("dns01-exec", 3),
            ("dns01-many", 3),
        ];
        let providers = PROVIDERS.map(|name| (format!("dns01-{}", name.to_lowercase()), 3));
        let other = other.map(|(folder, objects)| (folder.to_owned(), objects));
        for (folder, objects) in other.into_iter().chain(providers) {
            let path = format!("{}/examples/{folder}", env!("CARGO_MANIFEST_DIR"));
            let sources = read(&[path], Depth::Flat, &mut std::io::empty()).unwrap();
            let namespaces = Namespaces { given: None, default: "default" };
            let set = manifest::read(&sources, namespaces).unwrap();
            assert_eq!(set.documents.len(), objects, "{folder}");
            assert_eq!(set.warnings, [], "{folder}");
            assert_eq!(set.skipped, [], "{folder}");
        }
    }

    #[test]
    fn every_dns_provider_has_an_example_that_tells_its_fields_and_permissions() {
        for provider in PROVIDERS {
            let folder = format!(
                "{}/examples/dns01-{}",
                env!("CARGO_MANIFEST_DIR"),
                provider.to_lowercase()
            );
            let page = fs::read_to_string(format!("{folder}/README.md")).unwrap();
            let manifests = fs::read_to_string(format!("{folder}/manifests.yaml")).unwrap();
            assert!(page.contains("\n## Least permissions\n"), "{provider}");
            let (_, fields) =
                page.split_once(&format!("\n## Fields of `dns01.{provider}`\n")).unwrap();
            let (_, solver) = manifests.split_once(&format!("\n        {provider}:\n")).unwrap();
            // The provider's own fields stand two columns further in than its name.
            let used = solver.lines().take_while(|line| line.starts_with("          "));
            let used = used.filter_map(|line| line.strip_prefix("          ")?.split_once(':'));
            for (field, _) in used.filter(|(field, _)| !field.starts_with([' ', '#'])) {
                assert!(fields.contains(field), "{provider}: the page lacks {field}");
            }
        }
    }
}
