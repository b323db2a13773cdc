//! Attacks on the admin port of the built binary, on a socket and with few descriptors. Any pod of
//! a cluster can reach that port.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

const HALF_A_REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nhost: operator\r\n";

/// Address of regular clients.
const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// Address of a flood that has its own.
const THERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// An operator whose API server never answers. The admin port is served from the start.
struct Operator {
    process: Child,
    log: BufReader<ChildStderr>,
    kubeconfig: PathBuf,
    admin: SocketAddr,
    /// Output of the operator before it served.
    said: String,
    /// The API server's listener, on which nothing accepts.
    _silent: TcpListener,
}

impl Operator {
    /// Starts the operator with these descriptor limits, given as shell commands.
    async fn start(name: &str, limits: &str) -> Self {
        let silent = TcpListener::bind((HERE, 0)).await.expect("a port is free");
        let server = silent.local_addr().expect("it is bound");
        let kubeconfig = std::env::temp_dir().join(format!("stowage-admin-{name}-{}", std::process::id()));
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: it\n\
             clusters: [{{name: it, cluster: {{server: 'http://{server}'}}}}]\n\
             users: [{{name: it, user: {{}}}}]\ncontexts: [{{name: it, context: {{cluster: it, user: it}}}}]\n"
        );
        fs::write(&kubeconfig, text).expect("there is room");
        let mut process = Command::new("sh")
            .args(["-c", &format!("{limits}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_stowage-operator"), "run"])
            .args(["--gateway-endpoint", "http://gateway.example", "--log-format", "json"])
            .args(["--admin-address", "127.0.0.1:0", "--kubeconfig"])
            .arg(&kubeconfig)
            .stderr(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let mut log = BufReader::new(process.stderr.take().expect("it is piped"));
        let mut said = String::new();
        let admin = loop {
            let mut line = String::new();
            let length = log.read_line(&mut line).expect("it logs text");
            assert_ne!(length, 0, "it ended before it served, and said: {said}");
            let told: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
            let fields = &told["fields"];
            if fields["message"].as_str().is_some_and(|message| message.starts_with("serving")) {
                break fields["address"].as_str().expect("it tells where").parse().expect("an address");
            }
            said.push_str(&line);
        };
        Self { process, log, kubeconfig, admin, said, _silent: silent }
    }

    async fn connect(&self, from: Ipv4Addr) -> std::io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        socket.connect(self.admin).await
    }

    /// Opens this many connections, sends half a request on each, and keeps them open.
    async fn half_requests(&self, from: Ipv4Addr, how_many: usize) -> Vec<TcpStream> {
        let mut held = Vec::new();
        for _ in 0..how_many {
            let Ok(Ok(mut stream)) = timeout(Duration::from_millis(200), self.connect(from)).await else { continue };
            // The connection may be closed already.
            let _ = stream.write_all(HALF_A_REQUEST).await;
            held.push(stream);
        }
        held
    }

    /// Returns the answer to a request within the second that a kubelet waits, otherwise an empty
    /// string.
    async fn ask(&self, path: &str) -> String {
        let asked = async {
            let mut stream = self.connect(HERE).await?;
            stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: operator\r\n\r\n").as_bytes()).await?;
            answer(&mut stream).await
        };
        timeout(Duration::from_secs(1), asked).await.map_or(String::new(), |answer| answer.unwrap_or_default())
    }

    fn open_descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.process.id())).expect("it runs").count()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(&self.kubeconfig);
        let mut rest = String::new();
        while self.log.read_line(&mut rest).is_ok_and(|length| length > 0) {}
        // Shown when a test fails.
        #[expect(clippy::print_stderr, reason = "what the operator said")]
        {
            eprintln!("{}{rest}", self.said);
        }
    }
}

/// Reads an answer to the end of its body, by its content length.
async fn answer(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut text = String::new();
    loop {
        let mut some = vec![0; 64 * 1024];
        let length = stream.read(&mut some).await?;
        text.push_str(&String::from_utf8_lossy(&some[..length]));
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let told = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            told.and_then(|told| told.parse().ok()) == Some(body.len())
        });
        if whole || length == 0 {
            return Ok(text);
        }
    }
}

/// Raises the limit, so that this process can hold a thousand connections besides those of other
/// tests.
fn have_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    setrlimit(Resource::Nofile, raised).expect("the soft limit may be raised up to the hard one");
}

// covers: 5.admin.room
#[tokio::test]
async fn a_probe_is_answered_beside_a_thousand_half_requests() {
    have_descriptors();
    let operator = Operator::start("halves", "ulimit -n 512").await;
    let _held = operator.half_requests(HERE, 1_000).await;
    let open = operator.open_descriptors();
    for (path, status) in [("/healthz", "200"), ("/readyz", "503"), ("/metrics", "200")] {
        let answer = operator.ask(path).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{path} beside {open} open descriptors of 512: {answer:?}"
        );
    }
    assert!(operator.open_descriptors() < 300, "{} are open", operator.open_descriptors());
}

// covers: 5.admin.room
#[tokio::test]
async fn who_holds_the_most_connections_loses_them_first() {
    have_descriptors();
    let operator = Operator::start("fair", "ulimit -n 512").await;
    let mut slow = operator.connect(HERE).await.expect("it listens");
    slow.write_all(b"GET /healthz HTTP/1.1\r\n").await.expect("it reads");
    let _held = operator.half_requests(THERE, 1_000).await;
    slow.write_all(b"host: operator\r\n\r\n").await.expect("it still reads");
    let answer = timeout(Duration::from_secs(1), answer(&mut slow)).await.expect("in time").unwrap_or_default();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer:?}");
}

// covers: 5.admin.deadline
#[tokio::test]
async fn who_sends_slowly_or_not_at_all_is_cut() {
    let operator = Operator::start("slow", "ulimit -n 512").await;
    let mut silent = operator.connect(HERE).await.expect("it listens");
    let mut slow = operator.connect(HERE).await.expect("it listens");
    slow.write_all(HALF_A_REQUEST).await.expect("it reads");
    let began = Instant::now();
    let drip = async {
        while slow.write_all(b"x").await.is_ok() && began.elapsed() < Duration::from_secs(12) {
            sleep(Duration::from_millis(100)).await;
        }
    };
    drip.await;
    assert!(began.elapsed() < Duration::from_secs(8), "bytes were taken for {:?}", began.elapsed());
    let end = timeout(Duration::from_secs(1), silent.read(&mut [0])).await;
    assert!(end.is_ok(), "a connection without a request is still open after {:?}", began.elapsed());
}

// covers: 5.admin.deadline
#[tokio::test]
async fn a_connection_ends_with_its_answer() {
    let operator = Operator::start("once", "ulimit -n 512").await;
    let mut stream = operator.connect(HERE).await.expect("it listens");
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: operator\r\n\r\n").await.expect("it reads");
    let answer = answer(&mut stream).await.expect("it answers");
    assert!(answer.contains("connection: close"), "{answer}");
    let end = timeout(Duration::from_secs(1), stream.read(&mut [0])).await.expect("it closes at once");
    assert_eq!(end.expect("in good order"), 0);
}

// covers: 5.admin.head
#[tokio::test]
async fn a_head_of_any_size_is_refused_before_it_is_kept() {
    let operator = Operator::start("head", "ulimit -n 512").await;
    let mut stream = operator.connect(HERE).await.expect("it listens");
    let head = format!("GET /healthz HTTP/1.1\r\nx: {}\r\n", "x".repeat(64 * 1024));
    // The server stops reading in the middle of it.
    let _ = stream.write_all(head.as_bytes()).await;
    let answer = timeout(Duration::from_secs(1), answer(&mut stream)).await.expect("at once").unwrap_or_default();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

// covers: 5.descriptors
#[tokio::test]
async fn as_many_descriptors_as_may_be_are_used() {
    let operator = Operator::start("limit", "ulimit -Sn 64; ulimit -Hn 512").await;
    let limits = fs::read_to_string(format!("/proc/{}/limits", operator.process.id())).expect("it runs");
    let files = limits.lines().find(|line| line.starts_with("Max open files")).expect("there is such a limit");
    assert_eq!(files.split_whitespace().skip(3).take(2).collect::<Vec<_>>(), ["512", "512"]);
    assert!(operator.said.contains("\"descriptors\":512"), "{}", operator.said);
}
