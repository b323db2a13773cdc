//! Commands in a block of a page, with as much of the shell's grammar as the documentation uses.

/// Prefix of a line with a prompt.
const PROMPT: &str = "$ ";
/// First words of commands. Paths below `target/`, `e2e/` and `fuzz/` are programs too.
const PROGRAMS: [&str; 25] = [
    "aws",
    "cargo",
    "curl",
    "diff",
    "docker",
    "eval",
    "export",
    "for",
    "garage",
    "git",
    "helm",
    "just",
    "kind",
    "kubectl",
    "ln",
    "mc",
    "radosgw-admin",
    "stowage-bench",
    "stowage-e2e",
    "stowage-gateway",
    "stowage-operator",
    "stowage-proof",
    "stowage-sim",
    "until",
    "while",
];
const FOLDERS: [&str; 3] = ["target/", "e2e/", "fuzz/"];

/// Returns the commands in a block, in order; `None` if the block has no prompt and doesn't begin
/// with a command. In a block with prompts, other lines are output.
pub(super) fn commands(block: &str) -> Option<Vec<String>> {
    let prompted = block.lines().any(|line| line.starts_with(PROMPT));
    let begins = || block.lines().find(|line| !line.trim().is_empty()).is_some_and(is_command);
    if !prompted && !begins() {
        return None;
    }
    let (mut commands, mut unfinished) = (Vec::new(), None::<String>);
    for line in block.lines() {
        let typed = if prompted { line.strip_prefix(PROMPT) } else { Some(line) };
        let command = match unfinished.take() {
            Some(begun) => format!("{begun}\n{line}"),
            None => match typed.filter(|it| !it.trim().is_empty() && !it.starts_with('#')) {
                Some(begun) => begun.to_owned(),
                None => continue,
            },
        };
        match goes_on(&command) {
            true => unfinished = Some(command),
            false => commands.push(command),
        }
    }
    // An incomplete command is kept: bash will report the syntax error.
    commands.extend(unfinished);
    Some(commands)
}

/// True if inline code is a complete command, and not just a command's name: kubectl needs a verb
/// and an object, the project's programs a subcommand with arguments.
pub(super) fn is_whole(code: &str) -> bool {
    let least = match code.split(' ').next() {
        Some("kubectl" | "helm" | "stowage-sim" | "stowage-proof") => 4,
        Some("stowage-operator" | "stowage-gateway") => 3,
        _ => return false,
    };
    code.split(' ').count() >= least && !code.contains('…')
}

fn is_command(line: &str) -> bool {
    let is_variable = |word: &&str| {
        word.split_once('=').is_some_and(|(name, _)| name.chars().all(|it| it.is_ascii_uppercase() || it == '_'))
    };
    let first = line.split_whitespace().find(|word| !is_variable(word)).unwrap_or_default();
    PROGRAMS.contains(&first) || FOLDERS.iter().any(|folder| first.starts_with(folder))
}

/// True if a command continues after its last line.
fn goes_on(command: &str) -> bool {
    let mut read = Read::default();
    command.lines().for_each(|line| read.line(line));
    read.continued || read.quote.is_some() || read.ends_with.is_some() || read.depth > 0
}

/// State of parsing a command.
#[derive(Default)]
struct Read {
    /// The open quote.
    quote: Option<char>,
    /// The delimiter that ends the open here-document.
    ends_with: Option<String>,
    /// Number of open loops and conditions.
    depth: usize,
    /// True if the last line is continued on the next one.
    continued: bool,
}

impl Read {
    fn line(&mut self, line: &str) {
        if let Some(last) = &self.ends_with {
            if line.trim() == last {
                self.ends_with = None;
            }
            return;
        }
        let code = self.unquoted(line);
        self.continued = ["\\", "|", "&&"].iter().any(|end| code.trim_end().ends_with(end));
        if let Some((_, rest)) = line.split_once("<<").filter(|_| code.contains("<<")) {
            let word = rest.trim_start_matches('-').split_whitespace().next();
            self.ends_with = word.map(|word| word.trim_matches(['\'', '"']).to_owned());
        }
        for word in code.split([' ', ';']) {
            match word {
                "do" | "then" => self.depth += 1,
                "done" | "fi" => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Returns a line without its comment and with `_` in place of quoted text.
    fn unquoted(&mut self, line: &str) -> String {
        let (mut code, mut letters) = (String::new(), line.chars());
        while let Some(letter) = letters.next() {
            match (self.quote, letter) {
                (Some('"'), '\\') => {
                    letters.next();
                }
                (Some(quote), letter) if quote == letter => self.quote = None,
                (Some(_), _) => {}
                (None, '\\') => {
                    code.push(letter);
                    code.extend(letters.next().map(|_| '_'));
                }
                (None, '\'' | '"') => {
                    self.quote = Some(letter);
                    code.push('_');
                }
                (None, '#') if code.is_empty() || code.ends_with(' ') => break,
                (None, _) => code.push(letter),
            }
        }
        code
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::each_line("kubectl get pods\njust demo # it's long\n", &["kubectl get pods", "just demo # it's long"])]
    #[case::blank("kubectl get pods\n\n# a comment\n\naws s3 ls\n", &["kubectl get pods", "aws s3 ls"])]
    #[case::continued("helm install x \\\n    --set a=b\naws s3 ls", &["helm install x \\\n    --set a=b", "aws s3 ls"])]
    #[case::pipe("kubectl logs x |\n  sed -n p\naws s3 ls", &["kubectl logs x |\n  sed -n p", "aws s3 ls"])]
    #[case::text_to_read(
        "kubectl apply -f - <<EOF\nkind: X # it's \"that\nEOF\nkubectl wait x",
        &["kubectl apply -f - <<EOF\nkind: X # it's \"that\nEOF", "kubectl wait x"]
    )]
    #[case::text_as_it_is("kubectl apply -f - <<-'E'\n$x\nE\nkubectl wait x", &["kubectl apply -f - <<-'E'\n$x\nE", "kubectl wait x"])]
    #[case::quotes("kubectl patch x -p '{\n}'\nkubectl wait x", &["kubectl patch x -p '{\n}'", "kubectl wait x"])]
    #[case::escaped("kubectl get \"a\\\"\" b\nkubectl wait \\\"", &["kubectl get \"a\\\"\" b", "kubectl wait \\\""])]
    #[case::loops(
        "until kubectl get x; do\n  sleep 1\ndone\nfor i in 1; do aws s3 ls; done",
        &["until kubectl get x; do\n  sleep 1\ndone", "for i in 1; do aws s3 ls; done"]
    )]
    #[case::prompts("$ stowage-sim demo\nall is well\n$ aws \\\n  s3 ls\nnothing", &["stowage-sim demo", "aws \\\n  s3 ls"])]
    #[case::any_after_a_prompt("$ frobnicate\n", &["frobnicate"])]
    #[case::variables("A_B=1 cargo test\n", &["A_B=1 cargo test"])]
    #[case::folders("e2e/promtool/build\n", &["e2e/promtool/build"])]
    #[case::without_an_end("kubectl get 'x\n", &["kubectl get 'x"])]
    fn a_command_ends_where_a_shell_would_end_it(#[case] block: &str, #[case] expected: &[&str]) {
        assert_eq!(commands(block).unwrap(), expected);
    }

    #[rstest]
    #[case("team-a/photos    nothing to do\n")]
    #[case("spec:\n  containers:\n")]
    #[case("")]
    fn what_is_no_command_is_none(#[case] block: &str) {
        assert_eq!(commands(block), None);
    }

    #[rstest]
    #[case("kubectl get obc -n team-a", true)]
    #[case("stowage-operator plan --obc", true)]
    #[case("kubectl delete", false)]
    #[case("helm install --wait", false)]
    #[case("stowage-operator plan", false)]
    #[case("stowage-proof explore rotate […]", false)]
    #[case("garage key allow --create-bucket", false)]
    fn a_name_of_a_command_is_not_taken_for_one(#[case] code: &str, #[case] expected: bool) {
        assert_eq!(is_whole(code), expected);
    }
}
