//! What bad deliveries cost: an answer, and nothing else.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::forge::{Hooked, TOKEN, answer, deliver, github, headers, sign};
use crate::support::world::Agent;

const LIMIT: usize = 25 * 1024 * 1024;

#[tokio::test]
async fn a_wrong_signature_and_an_unknown_path_are_answered_alike_and_cost_nothing() {
    let hooked = Hooked::new("GitHub").await;
    let body = hooked.body("refs/heads/main");
    let (fetches, before) = (hooked.fetches(), hooked.world.source().await);
    hooked.world.proxy.forget();
    let begun = Instant::now();
    let good = github("good", &body);
    let mut answers = Vec::new();
    let unknown = hooked.path.replace(|char: char| char.is_ascii_digit(), "0");
    for path in [
        unknown.as_str(),
        "/",
        "/hook/",
        "/hook",
        &hooked.path[..69],
        "/healthz",
        "/metrics",
    ] {
        answers.push(deliver(&hooked.address, path, &good, body.as_bytes()).await);
    }
    let mut signatures: Vec<String> = ["", "sha256=", "sha256=00", "sha1=00", "\u{e9}"]
        .map(str::to_owned)
        .to_vec();
    signatures.push(sign("the token of somebody else", &body));
    signatures.push(sign(TOKEN, format!("{body} ")));
    signatures.push(sign(TOKEN, &body).replace("sha256", "sha1"));
    for signature in signatures {
        let mut wrong = good.clone();
        wrong[3].1 = signature;
        answers.push(hooked.send(&wrong, &body).await);
    }
    answers.push(hooked.send(&good[..3], &body).await);
    let mut old = good[..3].to_vec();
    old.push(("X-Hub-Signature".to_owned(), sign(TOKEN, &body)));
    answers.push(hooked.send(&old, &body).await);
    let count = answers.len();
    answers.dedup();
    assert_eq!(answers.len(), 1, "nobody can tell them apart: {answers:?}");
    assert_eq!(
        (answers[0].status, answers[0].text.as_str()),
        (404, "not found\n")
    );

    assert_eq!(hooked.counted("refused"), u64::try_from(count).unwrap());
    assert_eq!(hooked.fetches(), fetches);
    assert_eq!(hooked.status_writes(), 0);
    assert_eq!(
        hooked.world.source().await.metadata.resource_version,
        before.metadata.resource_version
    );
    let most = 2 + usize::try_from(begun.elapsed().as_secs()).unwrap();
    let reads = hooked.secret_reads();
    assert!(
        reads <= most,
        "{reads}: the Secret is read every second at most"
    );
}

#[tokio::test]
async fn what_is_signed_but_cannot_be_read_is_refused_with_the_reason() {
    let hooked = Hooked::new("GitHub").await;
    let body = hooked.body("refs/heads/main");
    let fetches = hooked.fetches();
    let send = async |id: &str, type_: &str, body: &[u8]| {
        let mut headers = github(id, body);
        headers[2].1 = type_.to_owned();
        hooked.send(&headers, body).await
    };
    let json = "application/json";
    let not_utf8 = [b"{\"ref\": \"".as_slice(), &[0xff, 0xfe], b"\"}"].concat();
    for (number, body) in [
        b"".as_slice(),
        b"{",
        b"[]",
        b"payload=",
        &not_utf8,
        &[0; 100],
    ]
    .iter()
    .enumerate()
    {
        let answer = send(&format!("broken-{number}"), json, body).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.text.contains("not what GitHub sends"), "{answer:?}");
    }
    let answer = send("form", "application/x-www-form-urlencoded", body.as_bytes()).await;
    assert_eq!(answer.status, 400);
    assert!(answer.text.contains("no field `payload`"), "{answer:?}");
    for type_ in ["text/plain", "application/xml", ""] {
        let answer = send(&format!("type-{type_}"), type_, body.as_bytes()).await;
        assert_eq!(answer.status, 415, "{answer:?}");
        assert!(answer.text.contains("application/json"), "{answer:?}");
    }
    let status = hooked.until("the last one is noted", |status| {
        status
            .last_delivery
            .as_ref()
            .is_some_and(|last| last.result == "Unreadable")
    });
    status.await;
    assert_eq!(hooked.fetches(), fetches);
    assert_eq!(hooked.counted("Unreadable"), 10);
}

#[tokio::test]
async fn what_is_too_large_or_never_ends_is_cut_off() {
    let hooked = Hooked::new("GitHub").await;
    let declared = headers(&[("X-Hub-Signature-256", &sign(TOKEN, ""))]);
    let head = |path: &str, length: &str| {
        let signature = &declared[0].1;
        format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: {signature}\r\n{length}\r\n\r\n"
        )
    };
    // Declared: nothing is read, whoever has the path.
    for path in [hooked.path.as_str(), "/hook/nobody"] {
        let length = format!("Content-Length: {}", LIMIT + 1);
        let mut stream = TcpStream::connect(&hooked.address).await.unwrap();
        stream
            .write_all(head(path, &length).as_bytes())
            .await
            .unwrap();
        assert_eq!(answer(stream).await.status, 413);
    }
    // Endless: cut off at the limit, or at once where nobody has the path.
    let before = resident(&hooked.agent);
    let mut sent = Vec::new();
    for path in [hooked.path.as_str(), "/hook/nobody"] {
        let mut stream = TcpStream::connect(&hooked.address).await.unwrap();
        stream
            .write_all(head(path, "Transfer-Encoding: chunked").as_bytes())
            .await
            .unwrap();
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        let mut count = 0_usize;
        while count < 10_000 && stream.write_all(chunk.as_bytes()).await.is_ok() {
            count += 1;
        }
        sent.push(count * 0x10000);
    }
    assert!(
        sent[0] < LIMIT + 16 * 1024 * 1024,
        "{sent:?} beyond what sockets hold"
    );
    assert!(sent[1] < 16 * 1024 * 1024, "{sent:?}");
    let grown = resident(&hooked.agent).saturating_sub(before);
    assert!(grown <= 32 * 1024, "{grown} KiB more");
    // Headers have a limit as well.
    let mut stream = TcpStream::connect(&hooked.address).await.unwrap();
    let long = format!(
        "POST {} HTTP/1.1\r\nX-Long: {}\r\n\r\n",
        hooked.path,
        "x".repeat(64 * 1024)
    );
    let _ = stream.write_all(long.as_bytes()).await;
    // The rest that nobody reads may reset the connection before its answer is read.
    let mut text = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut text).await;
    assert!(
        read.is_ok_and(|_| text.starts_with(b"HTTP/1.1 431"))
            || text.is_empty()
            || text.starts_with(b"HTTP/1.1 431")
    );
    assert_eq!(hooked.push("good").await.status, 200);
    assert_eq!(hooked.counted("unfinished"), 1);
}

#[tokio::test]
async fn whoever_is_slow_is_hung_up_on() {
    let hooked = Hooked::new("GitHub").await;
    let body = hooked.body("refs/heads/main");
    let mut half_head = TcpStream::connect(&hooked.address).await.unwrap();
    half_head.write_all(b"POST /hook/").await.unwrap();
    let mut silent = TcpStream::connect(&hooked.address).await.unwrap();
    silent.write_all(b"").await.unwrap();
    let mut half_body = TcpStream::connect(&hooked.address).await.unwrap();
    let head = format!(
        "POST {} HTTP/1.1\r\nX-Hub-Signature-256: {}\r\nContent-Length: {}\r\n\r\n{{",
        hooked.path,
        sign(TOKEN, &body),
        body.len()
    );
    half_body.write_all(head.as_bytes()).await.unwrap();
    for stream in [half_head, silent] {
        let status = answer(stream).await.status;
        assert!([0, 408].contains(&status), "{status}");
    }
    assert_eq!(answer(half_body).await.status, 408);
    assert_eq!(hooked.counted("unfinished"), 1);
    assert_eq!(hooked.push("good").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_slow_connections_cost_little_memory() {
    let hooked = Hooked::new("GitHub").await;
    // What a first delivery allocates once is not what connections cost.
    assert_eq!(hooked.push("first").await.status, 200);
    let before = resident(&hooked.agent);
    let mut flood = JoinSet::new();
    let head = format!(
        "POST {} HTTP/1.1\r\nX-Slow: {}",
        hooked.path,
        "x".repeat(12 * 1024)
    );
    for _ in 0..10_000 {
        let (address, head) = (hooked.address.clone(), head.clone());
        flood.spawn(async move {
            let connecting =
                tokio::time::timeout(Duration::from_secs(20), TcpStream::connect(address));
            match connecting.await {
                Ok(Ok(mut stream)) => {
                    let _ = stream.write_all(head.as_bytes()).await;
                    tokio::time::sleep(Duration::from_secs(20)).await;
                    true
                }
                // The kernel's queue is full: that connection costs the agent nothing.
                Ok(Err(error)) => {
                    assert_ne!(error.kind(), ErrorKind::AddrNotAvailable);
                    false
                }
                Err(_) => false,
            }
        });
    }
    let (mut most, mut healthy) = (before, 0);
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        most = most.max(resident(&hooked.agent));
        let private = hooked.agent.address();
        healthy += usize::from(super::forge::page(&private, "/healthz").ends_with("ok\n"));
    }
    assert_eq!(healthy, 8, "the private port is another one");
    assert_eq!(
        hooked.push("during").await.status,
        200,
        "a forge gets through"
    );
    let grown = most.max(resident(&hooked.agent)) - before;
    assert!(grown <= 32 * 1024, "{grown} KiB more");
    flood.shutdown().await;
    assert_eq!(
        hooked.push("good").await.status,
        200,
        "the port is there again"
    );
}

/// Returns the resident memory of the agent, in KiB.
fn resident(agent: &Agent) -> usize {
    let text = std::fs::read_to_string(format!("/proc/{}/status", agent.id())).unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
