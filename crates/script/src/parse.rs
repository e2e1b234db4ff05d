//! The language read: text in, [`Script`] out, or what was expected where.

use crate::syntax::{
    Action, BodySpec, Call, Command, Event, Expression, IcmpSpec, IpSpec, PacketSpec, Place, Script,
    ScriptOption, TcpOption, TcpSpec, Time, TosSpec, Way,
};
use farpath_units::Duration;

/// Largest script that is read, bytes.
pub const MAX_SCRIPT: usize = 1 << 20;
/// Most events that are read.
const MAX_EVENTS: usize = 100_000;
/// Deepest nesting of expressions.
const MAX_DEPTH: u32 = 16;
/// Latest time that a script may name: a year.
const MAX_TIME: u64 = 366 * 86_400 * 1_000_000_000;

/// What is wrong with the text of a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: expected {expected}, found {found}")]
pub struct ParseError {
    /// Where.
    pub place: Place,
    /// What could stand there.
    pub expected: String,
    /// What does.
    pub found: String,
}

/// Reads a script.
pub fn parse(text: &str) -> Result<Script, ParseError> {
    if text.len() > MAX_SCRIPT {
        return Err(ParseError {
            place: Place { line: 1, column: 1 },
            expected: format!("a script of {MAX_SCRIPT} B at most"),
            found: format!("{} B", text.len()),
        });
    }
    let mut reader = Reader { text, at: 0, end: 0, place: Place { line: 1, column: 1 } };
    reader.script()
}

#[derive(Debug, Clone)]
struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// Behind what was taken last that is no blank and no comment.
    end: usize,
    place: Place,
}

type Read<T> = Result<T, ParseError>;

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl<'a> Reader<'a> {
    // ---- Characters ----

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Takes `bytes` bytes, and counts lines.
    fn advance(&mut self, bytes: usize) -> &'a str {
        let taken = &self.rest()[..bytes];
        for c in taken.chars() {
            if c == '\n' {
                self.place = Place { line: self.place.line + 1, column: 1 };
            } else {
                self.place.column += 1;
            }
        }
        self.at += bytes;
        if bytes > 0 {
            self.end = self.at;
        }
        taken
    }

    fn take_while(&mut self, holds: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.find(|c| !holds(c)).unwrap_or(rest.len());
        self.advance(len)
    }

    /// Takes what comes before `end`, and `end`.
    fn take_until(&mut self, end: &str, expected: &str) -> Read<&'a str> {
        match self.rest().find(end) {
            Some(len) => {
                let taken = self.advance(len);
                self.advance(end.len());
                Ok(taken)
            }
            None => {
                let last = self.rest().len();
                self.advance(last);
                Err(self.wrong(expected))
            }
        }
    }

    /// Blanks and comments.
    fn skip(&mut self) -> Read<()> {
        let end = self.end;
        loop {
            self.take_while(char::is_whitespace);
            if self.rest().starts_with("//") {
                self.take_while(|c| c != '\n');
            } else if self.rest().starts_with("/*") {
                self.advance(2);
                self.take_until("*/", "`*/` at the end of a comment")?;
            } else {
                self.end = end;
                return Ok(());
            }
        }
    }

    fn wrong(&self, expected: &str) -> ParseError {
        let word: String = match self.peek() {
            None => "the end of the script".to_owned(),
            Some('\n') => "the end of the line".to_owned(),
            Some(c) if is_word(c) => {
                let word: String = self.rest().chars().take_while(|&c| is_word(c)).take(40).collect();
                format!("`{word}`")
            }
            Some(c) => format!("`{}`", c.escape_default()),
        };
        ParseError { place: self.place, expected: expected.to_owned(), found: word }
    }

    fn wrong_word<T>(&self, place: Place, expected: &str, found: &str) -> Read<T> {
        let found: String = found.chars().take(60).collect();
        Err(ParseError { place, expected: expected.to_owned(), found: format!("`{}`", found.escape_debug()) })
    }

    /// Takes `token` if it comes next.
    fn eat(&mut self, token: &str) -> Read<bool> {
        self.skip()?;
        let found = self.rest().starts_with(token);
        if found {
            self.advance(token.len());
        }
        Ok(found)
    }

    fn need(&mut self, token: &str, expected: &str) -> Read<()> {
        if self.eat(token)? { Ok(()) } else { Err(self.wrong(expected)) }
    }

    /// The next word, and where it stands; empty where there is none.
    fn word(&mut self) -> Read<(Place, &'a str)> {
        self.skip()?;
        Ok((self.place, self.take_while(is_word)))
    }

    /// The next word, without taking it.
    fn next_word(&mut self) -> Read<&'a str> {
        self.skip()?;
        let rest = self.rest();
        Ok(&rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())])
    }

    fn eat_word(&mut self, word: &str) -> Read<bool> {
        let found = self.next_word()? == word;
        if found {
            self.advance(word.len());
        }
        Ok(found)
    }

    /// A number within a type's bounds, decimal or hexadecimal.
    fn number<T: TryFrom<i64>>(&mut self, expected: &str) -> Read<T> {
        self.skip()?;
        let place = self.place;
        let negative = self.rest().starts_with('-');
        if negative {
            self.advance(1);
        }
        let digits = self.take_while(is_word);
        let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
        let value = match hexadecimal {
            Some(digits) => i64::from_str_radix(digits, 16),
            None => digits.parse::<i64>(),
        };
        let value = value.ok().map(|value| if negative { -value } else { value });
        match value.and_then(|value| T::try_from(value).ok()) {
            Some(value) => Ok(value),
            None if digits.is_empty() => Err(self.wrong(expected)),
            None => self.wrong_word(place, expected, digits),
        }
    }

    /// Seconds, with up to nine digits behind the point.
    fn seconds(&mut self) -> Read<Duration> {
        const EXPECTED: &str = "a time in seconds, such as `0.1`";
        self.skip()?;
        let place = self.place;
        let whole = self.take_while(|c| c.is_ascii_digit());
        let mut digits = "";
        // `0...0.2` is the time 0 and an ellipsis.
        if self.rest().starts_with('.') && !self.rest().starts_with("..") {
            self.advance(1);
            digits = self.take_while(|c| c.is_ascii_digit());
        }
        if whole.is_empty() && digits.is_empty() {
            return Err(self.wrong(EXPECTED));
        }
        let seconds = if whole.is_empty() { Some(0) } else { whole.parse::<u64>().ok() };
        let nanos = digits.bytes().take(9).fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        let nanos = nanos * 10_u64.pow(9 - digits.len().min(9) as u32);
        let total = seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000)?.checked_add(nanos));
        match total.filter(|&total| total <= MAX_TIME) {
            Some(total) => Ok(Duration::from_nanos(total)),
            None => self.wrong_word(place, "a time of a year at most", whole),
        }
    }

    // ---- Script ----

    fn script(&mut self) -> Read<Script> {
        let mut script = Script::default();
        while self.eat("--")? {
            script.options.push(self.option()?);
        }
        self.skip()?;
        if self.peek() == Some('`') {
            script.begin = Some(self.command()?);
        }
        loop {
            self.skip()?;
            match self.peek() {
                // It would pass, whatever it is played against.
                None | Some('`') if script.events.is_empty() => {
                    return Err(self.wrong(
                        "an event at least: a packet, a system call, a command or code, with its time",
                    ));
                }
                None => return Ok(script),
                Some('`') => {
                    script.end = Some(self.command()?);
                    self.skip()?;
                    return match self.peek() {
                        None => Ok(script),
                        Some(_) => {
                            Err(self.wrong("the end of the script behind its last command, or a time"))
                        }
                    };
                }
                Some(_) if script.events.len() == MAX_EVENTS => {
                    return Err(self.wrong(&format!("{MAX_EVENTS} events at most")));
                }
                Some(_) => {
                    let event = self.event()?;
                    script.events.push(event);
                }
            }
        }
    }

    fn option(&mut self) -> Read<ScriptOption> {
        let place = self.place;
        let name = self.take_while(|c| is_word(c) || c == '-').to_owned();
        if name.is_empty() {
            return Err(self.wrong("the name of an option"));
        }
        let mut value = None;
        if self.rest().starts_with('=') {
            self.advance(1);
            let quoted = ['"', '`'].into_iter().find(|&quote| self.peek() == Some(quote));
            value = Some(match quoted {
                Some(quote) => {
                    self.advance(1);
                    let end = quote.to_string();
                    self.take_until(&end, "the end of the option's value")?.to_owned()
                }
                None => self.take_while(|c| !c.is_whitespace()).to_owned(),
            });
        }
        Ok(ScriptOption { place, name, value })
    }

    fn command(&mut self) -> Read<Command> {
        let place = self.place;
        self.advance(1);
        let text = self.take_until("`", "a backquote at the end of a command")?.to_owned();
        Ok(Command { place, text })
    }

    fn event(&mut self) -> Read<Event> {
        let (place, start) = (self.place, self.at);
        let time = self.time()?;
        self.skip()?;
        let rest = self.rest();
        let action = if rest.starts_with('`') {
            Action::Command(self.command()?)
        } else if rest.starts_with("%{") {
            let place = self.place;
            self.advance(2);
            let text = self.take_until("}%", "`}%` at the end of code")?.to_owned();
            Action::Code(Command { place, text })
        } else if rest.starts_with(['<', '>']) {
            Action::Packet(self.packet()?)
        } else {
            Action::Call(self.call()?)
        };
        if let Action::Call(Call { until: Some(until), .. }) = &action {
            let begins = match time {
                Time::Absolute(at) | Time::Relative(at) => at,
                Time::AbsoluteRange(..) | Time::RelativeRange(..) | Time::Any => {
                    return Err(ParseError {
                        place,
                        expected: "one time for a call that blocks".to_owned(),
                        found: "a range".to_owned(),
                    });
                }
            };
            if *until < begins {
                return Err(ParseError {
                    place,
                    expected: "a call that ends after it begins".to_owned(),
                    found: format!("{begins}...{until}"),
                });
            }
        }
        Ok(Event { place, span: start..self.end, time, action })
    }

    fn time(&mut self) -> Read<Time> {
        const EXPECTED: &str = "a time (`+0`, `+.1`, `0.5`, `+.1~+.2`, `*`), or a command at the end";
        self.skip()?;
        let place = self.place;
        if self.eat("*")? {
            return Ok(Time::Any);
        }
        let relative = self.eat("+")?;
        self.skip()?;
        if !self.peek().is_some_and(|c| c.is_ascii_digit() || c == '.') {
            return Err(self.wrong(EXPECTED));
        }
        let from = self.seconds()?;
        if !self.eat("~")? {
            return Ok(if relative { Time::Relative(from) } else { Time::Absolute(from) });
        }
        if relative {
            self.need("+", "`+` before the second time of a range")?;
        }
        let to = self.seconds()?;
        if to < from {
            return Err(ParseError {
                place,
                expected: "a range whose end is not before its beginning".to_owned(),
                found: format!("{from}~{to}"),
            });
        }
        Ok(if relative { Time::RelativeRange(from, to) } else { Time::AbsoluteRange(from, to) })
    }

    // ---- Packets ----

    fn packet(&mut self) -> Read<PacketSpec> {
        let way = if self.eat("<")? { Way::In } else { Way::Out };
        if way == Way::Out {
            self.need(">", "`<` or `>`")?;
        }
        let mut ip = IpSpec::default();
        let mut around = Vec::new();
        loop {
            self.skip()?;
            if self.rest().starts_with('(') || self.rest().starts_with('[') {
                ip = self.ip_info()?;
            }
            let word = self.next_word()?;
            match word {
                "ipv4" | "ipv6" | "gre" | "mpls" => {
                    let place = self.place;
                    let text = self.take_until(": ", "`:` and a blank behind an outer header")?;
                    if around.len() == 8 {
                        return self.wrong_word(place, "eight outer headers at most", text);
                    }
                    around.push(text.trim().to_owned());
                }
                "udp" => {
                    self.advance(3);
                    let ports = self.ports()?;
                    self.need("(", "`(` and the length of the datagram")?;
                    let len = self.number("a length up to 65535")?;
                    self.need(")", "`)`")?;
                    return Ok(PacketSpec { way, ip, around, body: BodySpec::Udp { ports, len } });
                }
                "icmp" => {
                    self.advance(4);
                    let body = BodySpec::Icmp(self.icmp()?);
                    return Ok(PacketSpec { way, ip, around, body });
                }
                _ => {
                    let body = BodySpec::Tcp(self.tcp(way)?);
                    return Ok(PacketSpec { way, ip, around, body });
                }
            }
        }
    }

    fn ip_info(&mut self) -> Read<IpSpec> {
        const EXPECTED: &str =
            "`ect0`, `ect1`, `ect01`, `ce`, `noecn`, `tos 0x..`, `flowlabel 0x..` or `ttl ..`";
        let close = if self.rest().starts_with('(') { ")" } else { "]" };
        self.advance(1);
        let mut ip = IpSpec::default();
        loop {
            let (place, word) = self.word()?;
            match word.to_ascii_lowercase().as_str() {
                "noecn" | "no_ecn" => ip.tos = Some(TosSpec::Ecn(0)),
                "ect1" => ip.tos = Some(TosSpec::Ecn(1)),
                "ect0" => ip.tos = Some(TosSpec::Ecn(2)),
                "ce" => ip.tos = Some(TosSpec::Ecn(3)),
                "ect01" => ip.tos = Some(TosSpec::Ect),
                "tos" => ip.tos = Some(TosSpec::Whole(self.number("an octet")?)),
                "flowlabel" => ip.flow_label = Some(self.number("a flow label")?),
                "ttl" => ip.ttl = Some(self.number("a TTL up to 255")?),
                _ => return self.wrong_word(place, EXPECTED, word),
            }
            if self.eat(close)? {
                return Ok(ip);
            }
            self.need(",", "`,` or the closing bracket")?;
        }
    }

    fn ports(&mut self) -> Read<Option<(u16, u16)>> {
        self.skip()?;
        let before = self.clone();
        if self.peek().is_some_and(|c| c.is_ascii_digit()) {
            let source = self.take_while(is_word).parse().ok();
            if let Some(source) = source
                && self.eat(">")?
            {
                return Ok(Some((source, self.number("a port up to 65535")?)));
            }
        }
        *self = before;
        Ok(None)
    }

    fn tcp(&mut self, way: Way) -> Read<TcpSpec> {
        let ports = self.ports()?;
        self.skip()?;
        let place = self.place;
        let letters = self.take_while(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
        let mut flags = 0;
        for letter in letters.chars() {
            flags |= match letter {
                'F' => 0x001,
                'S' => 0x002,
                'R' => 0x004,
                'P' => 0x008,
                '.' => 0x010,
                'U' => 0x020,
                'E' => 0x040,
                'W' | 'C' => 0x080,
                'A' => 0x100,
                // The three bits AE, CWR and ECE as a count (RFC 9768).
                '0'..='7' => {
                    let count = u16::from(letter as u8 - b'0');
                    (count & 1) << 6 | (count & 2) << 6 | (count & 4) << 6
                }
                '-' if letters == "-" => 0,
                _ => return self.wrong_word(place, "flags out of `FSRP.UEWA`, or `-`", letters),
            };
        }
        if letters.is_empty() {
            return Err(self.wrong("flags out of `FSRP.UEWA`, `-`, `udp` or `icmp`"));
        }
        let (seq, len) = self.sequence()?;
        let mut spec =
            TcpSpec { ports, flags, seq, len, ack: None, window: None, urgent: None, options: None };
        if self.eat_word("ack")? {
            spec.ack = Some(self.number("an acknowledgment number")?);
        }
        if self.eat_word("win")? {
            spec.window = Some(self.number("a window up to 65535")?);
        }
        if self.eat_word("urg")? {
            spec.urgent = Some(self.number("an urgent pointer up to 65535")?);
        }
        spec.options = self.tcp_options()?;
        if spec.options.is_none() && way == Way::In {
            return self.wrong_word(self.place, "the options of a packet that comes in", "<...>");
        }
        Ok(spec)
    }

    /// `first:last(length)`
    fn sequence(&mut self) -> Read<(u32, u16)> {
        self.skip()?;
        let place = self.place;
        let first: u32 = self.number("a sequence number, as in `1:1001(1000)`")?;
        self.need(":", "`:` between sequence numbers")?;
        let last: u32 = self.number("the sequence number behind the last")?;
        self.need("(", "`(` and the length")?;
        let len: u16 = self.number("a length up to 65535")?;
        self.need(")", "`)`")?;
        if first.wrapping_add(len.into()) != last {
            let found = format!("{first}:{last}({len})");
            return self.wrong_word(place, "a length that is the difference of the sequence numbers", &found);
        }
        Ok((first, len))
    }

    /// `None` is `<...>`; none at all is an empty list.
    fn tcp_options(&mut self) -> Read<Option<Vec<TcpOption>>> {
        self.skip()?;
        // The next event may be one of `<` without a time: there is none such.
        if !self.rest().starts_with('<') {
            return Ok(Some(Vec::new()));
        }
        self.advance(1);
        if self.eat("...")? {
            self.need(">", "`>` behind `<...`")?;
            return Ok(None);
        }
        let mut options = Vec::new();
        loop {
            if options.len() == 40 {
                return Err(self.wrong("40 options at most"));
            }
            options.push(self.tcp_option()?);
            if self.eat(">")? {
                return Ok(Some(options));
            }
            self.need(",", "`,` or `>` behind a TCP option")?;
        }
    }

    fn tcp_option(&mut self) -> Read<TcpOption> {
        const EXPECTED: &str = "a TCP option: mss, wscale, sackOK, sack, TS, nop, eol, FO, FOEXP or md5";
        let (place, word) = self.word()?;
        Ok(match word.to_ascii_lowercase().as_str() {
            "nop" => TcpOption::Nop,
            "eol" => TcpOption::End,
            "mss" => TcpOption::Mss(self.number("an MSS up to 65535")?),
            "wscale" => TcpOption::WindowScale(self.number("a shift up to 255")?),
            "sackok" => TcpOption::SackOk,
            "sack" => {
                let mut blocks = Vec::new();
                loop {
                    self.skip()?;
                    if !self.peek().is_some_and(|c| c.is_ascii_digit()) {
                        break;
                    }
                    let start = self.number("a sequence number")?;
                    self.need(":", "`:` within a SACK block")?;
                    blocks.push((start, self.number("a sequence number")?));
                    if blocks.len() > 4 {
                        return Err(self.wrong("four SACK blocks at most"));
                    }
                }
                TcpOption::Sack(blocks)
            }
            "ts" => {
                if !self.eat_word("val")? {
                    return Err(self.wrong("`val` of the timestamps"));
                }
                let value = self.number("a timestamp")?;
                if !self.eat_word("ecr")? {
                    return Err(self.wrong("`ecr` of the timestamps"));
                }
                TcpOption::Timestamps(value, self.number("a timestamp")?)
            }
            "md5" => TcpOption::Md5(self.hexadecimal()?),
            "fo" => TcpOption::FastOpen(self.hexadecimal()?),
            "foexp" => TcpOption::FastOpenExperimental(self.hexadecimal()?),
            _ => return self.wrong_word(place, EXPECTED, word),
        })
    }

    fn hexadecimal(&mut self) -> Read<String> {
        let (place, word) = self.word()?;
        if word.len() <= 32 && word.chars().all(|c| c.is_ascii_hexdigit()) {
            return Ok(word.to_owned());
        }
        self.wrong_word(place, "at most 16 octets in hexadecimal", word)
    }

    fn icmp(&mut self) -> Read<IcmpSpec> {
        let (_, kind) = self.word()?;
        if kind.is_empty() {
            return Err(self.wrong("the type of the ICMP message, such as `unreachable`"));
        }
        let mut spec = IcmpSpec { kind: kind.to_owned(), code: None, mtu: None, id: None, echoed: None };
        loop {
            match self.next_word()? {
                "mtu" => {
                    self.advance(3);
                    spec.mtu = Some(self.number("an MTU")?);
                }
                "id" => {
                    self.advance(2);
                    spec.id = Some(self.number("an identifier")?);
                }
                word if !word.is_empty()
                    && spec.code.is_none()
                    && !word.starts_with(|c: char| c.is_ascii_digit()) =>
                {
                    spec.code = Some(self.advance(word.len()).to_owned());
                }
                _ => break,
            }
        }
        if self.eat("[")? {
            if self.next_word()? == "udp" || self.next_word()? == "raw" {
                return Err(self.wrong("the TCP segment that the message is about, `[first:last(length)]`"));
            }
            spec.echoed = Some(self.sequence()?);
            self.need("]", "`]`")?;
        }
        Ok(spec)
    }

    // ---- System calls ----

    fn call(&mut self) -> Read<Call> {
        let until = if self.eat("...")? { Some(self.seconds()?) } else { None };
        let (place, name) = self.word()?;
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.wrong("a packet (`<`, `>`), a system call, a command or `%{`"));
        }
        self.need("(", "`(` behind the name of a system call")?;
        let arguments = self.expressions(")", 0)?;
        self.need("=", "`=` and what the call returns")?;
        let expected = self.expression(0)?;
        let mut error = None;
        let word = self.next_word()?;
        if word.starts_with('E') && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit()) {
            error = Some(self.advance(word.len()).to_owned());
        }
        // A note for the reader.
        if self.eat("(")? {
            self.take_until(")", "`)` at the end of a note")?;
        }
        Ok(Call { place, until, name: name.to_owned(), arguments, expected, error })
    }

    /// Expressions up to `close`, which is taken too.
    fn expressions(&mut self, close: &str, depth: u32) -> Read<Vec<Expression>> {
        let mut list = Vec::new();
        if self.eat(close)? {
            return Ok(list);
        }
        loop {
            if list.len() == 256 {
                return Err(self.wrong("256 parts at most"));
            }
            list.push(self.expression(depth)?);
            if self.eat(close)? {
                return Ok(list);
            }
            self.need(",", &format!("`,` or `{close}`"))?;
        }
    }

    fn expression(&mut self, depth: u32) -> Read<Expression> {
        let mut one = self.simple(depth)?;
        let mut parts = 0;
        while self.eat("|")? {
            parts += 1;
            if parts > 64 {
                return Err(self.wrong("64 parts at most"));
            }
            one = Expression::Or(Box::new(one), Box::new(self.simple(depth)?));
        }
        Ok(one)
    }

    fn simple(&mut self, depth: u32) -> Read<Expression> {
        const EXPECTED: &str = "a number, a name, a text, `...`, `[` or `{`";
        if depth > MAX_DEPTH {
            return Err(self.wrong(&format!("{MAX_DEPTH} levels of brackets at most")));
        }
        if self.eat("...")? {
            return Ok(Expression::Any);
        }
        match self.peek() {
            Some('"') => {
                self.advance(1);
                let text = self.take_until("\"", "a quotation mark at the end of a text")?.to_owned();
                self.eat("...")?;
                Ok(Expression::Text(text))
            }
            Some('[') => {
                self.advance(1);
                Ok(Expression::List(self.expressions("]", depth + 1)?))
            }
            Some('{') => {
                self.advance(1);
                self.structure(depth + 1)
            }
            Some(c) if c.is_ascii_digit() || c == '-' => Ok(Expression::Number(self.number("a number")?)),
            Some(c) if is_word(c) => {
                let (_, word) = self.word()?;
                if self.rest().starts_with('(') {
                    self.advance(1);
                    return Ok(Expression::Apply(word.to_owned(), self.expressions(")", depth + 1)?));
                }
                Ok(Expression::Word(word.to_owned()))
            }
            _ => Err(self.wrong(EXPECTED)),
        }
    }

    /// The inside of `{...}`.
    fn structure(&mut self, depth: u32) -> Read<Expression> {
        let mut parts = Vec::new();
        if self.eat("}")? {
            return Ok(Expression::Structure(parts));
        }
        loop {
            if parts.len() == 256 {
                return Err(self.wrong("256 parts at most"));
            }
            let value = self.expression(depth)?;
            if self.eat("=")? {
                let name = match value {
                    Expression::Word(name) | Expression::Apply(name, _) => name,
                    _ => return Err(self.wrong("a name before `=`")),
                };
                parts.push((Some(name), self.expression(depth)?));
            } else {
                parts.push((None, value));
            }
            if self.eat("}")? {
                return Ok(Expression::Structure(parts));
            }
            self.need(",", "`,` or `}`")?;
        }
    }
}
