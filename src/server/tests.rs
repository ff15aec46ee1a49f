use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rstest::rstest;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::*;

struct Running {
    address: std::net::SocketAddr,
    alive: Arc<AtomicBool>,
    shutdown: CancellationToken,
    server: JoinHandle<std::io::Result<()>>,
}

async fn start() -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let alive = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&alive);
    let probes = Probes {
        alive: Arc::new(move || {
            let alive = asked.load(Ordering::Relaxed);
            alive
                .then_some(())
                .ok_or_else(|| "no heartbeat for 90 s".to_owned())
        }),
        ready: Arc::new(|| Err("sources are not listed yet".to_owned())),
        metrics: Arc::new(|| "# EOF\n".to_owned()),
    };
    let shutdown = CancellationToken::new();
    let server = tokio::spawn(serve(listener, probes, shutdown.clone()));
    Running {
        address,
        alive,
        shutdown,
        server,
    }
}

/// Sends a request and returns the whole answer; the server closes the connection after it.
async fn request(running: &Running, text: &str) -> String {
    let stream = TcpStream::connect(running.address).await.unwrap();
    stream.writable().await.unwrap();
    assert_eq!(stream.try_write(text.as_bytes()).unwrap(), text.len());
    let (mut answer, mut buffer) = (Vec::new(), [0; 1024]);
    loop {
        stream.readable().await.unwrap();
        match stream.try_read(&mut buffer) {
            Ok(0) => return String::from_utf8(answer).unwrap(),
            Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("{error}"),
            Err(_) => {}
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
        }
    }
}

#[rstest]
#[case("GET /healthz", "200 OK", "ok\n")]
#[case(
    "GET /readyz",
    "503 Service Unavailable",
    "sources are not listed yet\n"
)]
#[case("GET /metrics", "200 OK", "# EOF\n")]
#[case("GET /else", "404 Not Found", "")]
#[case("POST /healthz", "405 Method Not Allowed", "")]
#[tokio::test]
async fn each_path_answers(#[case] line: &str, #[case] status: &str, #[case] body: &str) {
    let running = start().await;
    let answer = request(&running, &format!("{line} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
    assert!(
        answer.starts_with(&format!("HTTP/1.1 {status}\r\n")),
        "{answer}"
    );
    assert!(answer.ends_with(&format!("\r\n\r\n{body}")), "{answer}");
    assert_eq!(
        answer.contains("content-type: application/openmetrics-text; version=1.0.0"),
        line.ends_with("/metrics")
    );
}

#[tokio::test]
async fn a_driver_without_a_heartbeat_is_not_alive() {
    let running = start().await;
    running.alive.store(false, Ordering::Relaxed);
    let answer = request(&running, "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_never_asks_is_closed() {
    let running = start().await;
    // Half a request; the answer ends only because the server hangs up.
    let answer = request(&running, "GET /healthz HT").await;
    assert_eq!(answer, "");
}

#[tokio::test]
async fn the_server_ends_when_it_is_told() {
    let running = start().await;
    running.shutdown.cancel();
    running.server.await.unwrap().unwrap();
}
