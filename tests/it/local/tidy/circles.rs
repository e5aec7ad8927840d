//! Circles of files and of folders: imports by every path in the sources, macros included. Files of one idea belong together; all
//! others import each other in one direction only.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::{Source, check, sources};

/// Names as they stand between `::`.
pub(super) type Path = Vec<String>;

/// What one file says about others.
struct File {
    module: Path,
    imports: Vec<Import>,
    /// Paths of two names and more outside `use`.
    paths: Vec<Path>,
}

struct Import {
    path: Path,
    /// The name that it has in this file.
    name: String,
    /// Whether others may take it from here.
    is_handed_on: bool,
}

impl File {
    fn read(source: &Source) -> Self {
        let relative = source.path.strip_prefix("src").unwrap().with_extension("");
        let mut module: Path =
            relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if module.last().is_some_and(|last| last == "mod") || module == ["lib"] {
            module.pop();
        }
        let stream: TokenStream = source.text.parse().expect("Rust source");
        let mut file = Self { module, imports: Vec::new(), paths: Vec::new() };
        file.take(stream);
        file
    }

    fn take(&mut self, stream: TokenStream) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let (mut at, mut is_test, mut is_public) = (0, false, false);
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => {
                    let text = group.stream().to_string();
                    is_test |= group.delimiter() == Delimiter::Bracket && text == "cfg (test)";
                    if group.delimiter() == Delimiter::Brace && is_test {
                        is_test = false;
                    } else {
                        self.take(group.stream());
                    }
                }
                TokenTree::Punct(punct) if punct.as_char() == ';' => is_test = false,
                TokenTree::Ident(word) if word == "pub" => is_public = true,
                TokenTree::Ident(word) if word == "use" => {
                    let end = (at..tokens.len()).find(
                        |end| matches!(&tokens[*end], TokenTree::Punct(p) if p.as_char() == ';'),
                    );
                    let end = end.unwrap_or(tokens.len());
                    if !is_test {
                        self.import(&tokens[at + 1..end], &Path::new(), is_public);
                    }
                    (at, is_public) = (end, false);
                    continue;
                }
                TokenTree::Ident(_) => {
                    let (path, after) = path_at(&tokens, at);
                    if path.len() > 1 && !is_test {
                        self.paths.push(path);
                    }
                    (at, is_public) = (after, false);
                    continue;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            at += 1;
        }
    }

    /// Reads what stands between `use` and `;`, or in braces within.
    fn import(&mut self, tree: &[TokenTree], before: &Path, is_handed_on: bool) {
        let is_comma =
            |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
        for part in tree.split(is_comma).filter(|part| !part.is_empty()) {
            let (path, after) = path_at(part, 0);
            let mut path: Path = before.iter().cloned().chain(path).collect();
            let braces = part.iter().skip(after).find_map(|token| match token {
                TokenTree::Group(group) => Some(group.stream()),
                _ => None,
            });
            if let Some(inner) = braces {
                let inner: Vec<TokenTree> = inner.into_iter().collect();
                self.import(&inner, &path, is_handed_on);
                continue;
            }
            if path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            let alias = part.get(after + 1).map(TokenTree::to_string);
            let name = alias.or_else(|| path.last().cloned()).unwrap_or_default();
            self.imports.push(Import { path, name, is_handed_on });
        }
    }
}

/// The path that begins at a token, and the token after it.
fn path_at(tokens: &[TokenTree], mut at: usize) -> (Path, usize) {
    let colon =
        |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':');
    let mut path = Path::new();
    while let Some(TokenTree::Ident(name)) = tokens.get(at) {
        path.push(name.to_string());
        at += 1;
        if !(colon(at) && colon(at + 1)) {
            break;
        }
        at += 2;
    }
    (path, at)
}

/// Names that each file imports from each other one.
#[derive(Default)]
pub(super) struct Arrows(pub(super) BTreeMap<Path, BTreeMap<Path, BTreeSet<String>>>);

struct House {
    files: Vec<File>,
    modules: BTreeSet<Path>,
    /// Names that a module hands on, and whose they are.
    handed_on: BTreeMap<(Path, String), (Path, String)>,
}

impl House {
    fn new(files: Vec<File>) -> Self {
        let modules = files.iter().map(|file| file.module.clone()).collect();
        let mut house = Self { files: Vec::new(), modules, handed_on: BTreeMap::new() };
        for file in &files {
            for import in file.imports.iter().filter(|import| import.is_handed_on) {
                if let Some((home, Some(name))) = house.split(&file.module, &import.path) {
                    let from = (file.module.clone(), import.name.clone());
                    house.handed_on.insert(from, (home, name));
                }
            }
        }
        Self { files, ..house }
    }

    /// The file that a path leads to, and the name that it takes there.
    fn split(&self, here: &Path, path: &Path) -> Option<(Path, Option<String>)> {
        let supers = path.iter().take_while(|name| *name == "super").count();
        let absolute: Path = match path.first()?.as_str() {
            "crate" => path[1..].to_vec(),
            "self" => here.iter().chain(&path[1..]).cloned().collect(),
            "super" => {
                here.iter().take(here.len() - supers).chain(&path[supers..]).cloned().collect()
            }
            first => {
                let below: Path = here.iter().cloned().chain([first.to_owned()]).collect();
                self.modules.contains(&below).then(|| here.iter().chain(path).cloned().collect())?
            }
        };
        let length = (0..=absolute.len()).rev().find(|n| self.modules.contains(&absolute[..*n]))?;
        Some((absolute[..length].to_vec(), absolute.get(length).cloned()))
    }

    /// The same, through modules that only hand a name on.
    fn lead(&self, here: &Path, path: &Path) -> Option<(Path, Option<String>)> {
        let (mut home, mut name) = self.split(here, path)?;
        while let Some(taken) = &name
            && let Some((of, its)) = self.handed_on.get(&(home.clone(), taken.clone()))
        {
            (home, name) = (of.clone(), Some(its.clone()));
        }
        Some((home, name))
    }

    fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::default();
        for file in &self.files {
            let own = file.imports.iter().filter(|import| !import.is_handed_on);
            let mut modules = BTreeMap::new();
            for import in own {
                match self.lead(&file.module, &import.path) {
                    Some((home, Some(name))) => arrows.add(&file.module, home, name),
                    Some((home, None)) => {
                        modules.insert(import.name.clone(), home);
                    }
                    None => {}
                }
            }
            for path in &file.paths {
                let absolute = modules.get(&path[0]).map(|module| {
                    let from_root = [String::from("crate")].into_iter();
                    from_root.chain(module.iter().cloned()).chain(path[1..].iter().cloned())
                });
                let absolute = absolute.map_or_else(|| path.clone(), Iterator::collect);
                if let Some((home, Some(name))) = self.lead(&file.module, &absolute) {
                    arrows.add(&file.module, home, name);
                }
            }
        }
        arrows
    }
}

impl Arrows {
    fn add(&mut self, from: &Path, to: Path, name: String) {
        if *from != to {
            self.0.entry(from.clone()).or_default().entry(to).or_default().insert(name);
        }
    }

    /// The arrows between files and folders that stand in one folder; a folder's `mod.rs` is no part of any.
    fn between_folders(&self) -> BTreeMap<Path, Self> {
        let mut folders: BTreeMap<Path, Self> = BTreeMap::new();
        for (from, taken) in &self.0 {
            for (to, names) in taken {
                let depth = from.iter().zip(to).take_while(|(a, b)| a == b).count();
                if depth == from.len() || depth == to.len() {
                    continue;
                }
                let child = |path: &Path| path[..=depth].to_vec();
                let arrows = folders.entry(from[..depth].to_vec()).or_default();
                for name in names {
                    arrows.add(&child(from), child(to), name.clone());
                }
            }
        }
        folders
    }

    /// The arrows that are left when files that take nothing from the rest, or give nothing to it, are put aside again and again.
    fn in_circles(mut self) -> Vec<String> {
        loop {
            let from: BTreeSet<Path> = self.0.keys().cloned().collect();
            let to: BTreeSet<Path> = self.0.values().flat_map(BTreeMap::keys).cloned().collect();
            let before = self.0.values().map(BTreeMap::len).sum::<usize>();
            self.0.retain(|file, _| to.contains(file));
            for taken in self.0.values_mut() {
                taken.retain(|file, _| from.contains(file));
            }
            self.0.retain(|_, taken| !taken.is_empty());
            if self.0.values().map(BTreeMap::len).sum::<usize>() == before {
                break;
            }
        }
        let line = |from: &Path, to: &Path, names: &BTreeSet<String>| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("{} takes from {}: {}", from.join("::"), to.join("::"), names.join(", "))
        };
        let lines = self
            .0
            .iter()
            .flat_map(|(from, taken)| taken.iter().map(move |(to, names)| line(from, to, names)));
        lines.collect()
    }
}

/// The arrows between the files of `src`.
pub(super) fn arrows() -> Arrows {
    House::new(sources("src").iter().map(File::read).collect()).arrows()
}

fn circles(files: Vec<File>) -> Vec<String> {
    House::new(files).arrows().in_circles()
}

fn circles_of_folders(arrows: &Arrows) -> Vec<String> {
    arrows.between_folders().into_values().flat_map(Arrows::in_circles).collect()
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    check(arrows().in_circles());
}

#[test]
fn no_folders_import_each_other_in_a_circle() {
    check(circles_of_folders(&arrows()));
}

#[test]
fn the_check_of_folders_sees_a_circle_that_no_files_make() {
    let circles = |files: &[(&str, &str)]| {
        let read = |(path, text): &(&str, &str)| {
            File::read(&Source { path: path.into(), text: (*text).to_owned() })
        };
        let arrows = House::new(files.iter().map(read).collect()).arrows();
        (arrows.between_folders().len(), circles_of_folders(&arrows).len())
    };
    let files = [
        ("src/lib.rs", "pub mod a; pub mod b;"),
        ("src/a/mod.rs", "pub mod x; pub mod y;"),
        ("src/a/x.rs", "use crate::b::X; pub struct A;"),
        ("src/a/y.rs", "pub struct Y;"),
        ("src/b.rs", "use crate::a::y::Y; pub struct X;"),
    ];
    assert_eq!(circles(&files), (1, 2));
    assert_eq!(circles(&files[..4]), (0, 0));
}

#[test]
fn the_check_of_circles_sees_every_form() {
    let circles = |files: &[(&str, &str)]| {
        let read = |(path, text): &(&str, &str)| {
            File::read(&Source { path: path.into(), text: (*text).to_owned() })
        };
        circles(files.iter().map(read).collect()).len()
    };
    let lib = ("src/lib.rs", "pub mod a; pub mod b;");
    let b = ("src/b.rs", "use crate::a::A; pub struct B;");
    for (text, expected) in [
        ("use crate::b::B;", 2),
        ("use super::b::{self, B as C};", 2),
        ("use crate::b; fn f() { b::f() }", 2),
        ("fn f() { format!(\"{}\", crate::b::f()) }", 2),
        ("use crate::b;", 0),
        ("// use crate::b::B;", 0),
        ("#[cfg(test)] mod tests { use crate::b::B; }", 0),
        ("#[cfg(test)] use crate::b::B;", 0),
        ("fn f() { \"crate::b::B\"; }", 0),
    ] {
        assert_eq!(circles(&[lib, ("src/a.rs", text), b]), expected, "{text}");
    }
    // A name that is only handed on belongs to where it is.
    let folder = ("src/a/mod.rs", "pub mod c; pub use self::c::A;");
    assert_eq!(circles(&[lib, folder, ("src/a/c.rs", "pub struct A;"), b]), 0);
    assert_eq!(circles(&[lib, folder, ("src/a/c.rs", "use crate::b::B; pub struct A;"), b]), 2);
}
