//! Results of the matrix.

use serde::Serialize;

use super::means::Over;

/// The operations of the matrix, by their names in scripts.
pub(super) const OPERATIONS: [&str; 10] =
    ["put", "get", "range", "list", "multipart", "copy", "delete-many", "presigned-put", "presigned-get", "form"];

/// Result of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "result", content = "why")]
pub(super) enum Outcome {
    Ok,
    /// The client doesn't have the operation, with its explanation.
    None(String),
    Failed(String),
}

/// Result of one operation of a client over one endpoint.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) client: String,
    pub(super) version: String,
    pub(super) operation: &'static str,
    pub(super) over: Over,
    #[serde(flatten)]
    pub(super) outcome: Outcome,
}

/// A client that can't be installed on this machine.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LeftOut {
    pub(super) client: String,
    pub(super) why: String,
}

/// The document that `-o json` prints.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Report {
    pub(super) rows: Vec<Row>,
    pub(super) left_out: Vec<LeftOut>,
}

impl Row {
    /// Returns the result as a line.
    pub(super) fn line(&self) -> String {
        let Self { client, operation, over, outcome, .. } = self;
        let outcome = match outcome {
            Outcome::Ok => "ok".to_owned(),
            Outcome::None(why) => format!("none: {why}"),
            Outcome::Failed(why) => format!("FAILED: {why}"),
        };
        format!("{client:<16} {:<5} {operation:<13} {outcome}", over.name())
    }
}

impl Report {
    /// Returns the number of failed operations.
    pub(super) fn failed(&self) -> usize {
        self.rows.iter().filter(|row| matches!(row.outcome, Outcome::Failed(_))).count()
    }

    /// Returns a table with a line for each client and endpoint and a column for each operation,
    /// followed by failures, operations that clients don't have, and clients that were left out.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{:<16} {:<9} {:<5}", "client", "version", "over");
        OPERATIONS.iter().for_each(|operation| text.push_str(&format!(" {operation}")));
        for rows in self.rows.chunk_by(|one, other| (&one.client, one.over) == (&other.client, other.over)) {
            let Some(first) = rows.first() else { continue };
            text.push_str(&format!("\n{:<16} {:<9} {:<5}", first.client, first.version, first.over.name()));
            for row in rows {
                let word = match row.outcome {
                    Outcome::Ok => "ok",
                    Outcome::None(_) => "-",
                    Outcome::Failed(_) => "FAIL",
                };
                text.push_str(&format!(" {word:<width$}", width = row.operation.len()));
            }
        }
        text.push('\n');
        let told = |row: &&Row| matches!(row.outcome, Outcome::Failed(_));
        self.rows.iter().filter(told).for_each(|row| text.push_str(&format!("\n{}", row.line())));
        let mut absent: Vec<String> = Vec::new();
        for row in &self.rows {
            if let Outcome::None(why) = &row.outcome {
                absent.push(format!("{} has no {}: {why}", row.client, row.operation));
            }
        }
        absent.sort();
        absent.dedup();
        absent.iter().for_each(|line| text.push_str(&format!("\n{line}")));
        self.left_out.iter().for_each(|it| text.push_str(&format!("\nleft out {}: {}", it.client, it.why)));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let row = |operation, over, outcome| Row {
            client: "boto3".to_owned(),
            version: "1.2".to_owned(),
            operation,
            over,
            outcome,
        };
        let rows = vec![
            row("put", Over::Http, Outcome::Ok),
            row("get", Over::Http, Outcome::Failed("404".to_owned())),
            row("form", Over::Http, Outcome::None("it has none".to_owned())),
            row("put", Over::Https, Outcome::Ok),
            row("form", Over::Https, Outcome::None("it has none".to_owned())),
        ];
        Report { rows, left_out: vec![LeftOut { client: "minio-go".to_owned(), why: "there is no go".to_owned() }] }
    }

    #[test]
    fn a_table_tells_all_of_it() {
        let text = report().text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1].trim_end(), "boto3            1.2       http  ok  FAIL -");
        assert_eq!(lines[2].trim_end(), "boto3            1.2       https ok  -");
        let told = [
            "boto3            http  get           FAILED: 404",
            "boto3 has no form: it has none",
            "left out minio-go: there is no go",
        ];
        assert_eq!(lines[4..], told);
        assert_eq!(report().failed(), 1);
    }

    #[test]
    fn the_document_has_a_row_for_each_operation() {
        let document = serde_json::to_value(report()).unwrap();
        assert_eq!(
            document["rows"][1],
            serde_json::json!({
                "client": "boto3", "version": "1.2", "operation": "get", "over": "http", "result": "failed", "why": "404",
            })
        );
        assert_eq!(document["left_out"][0]["client"], "minio-go");
    }
}
