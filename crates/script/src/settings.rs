//! Shell commands of scripts, as the settings that they are. Nothing is executed.

/// What one command sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// packetdrill's `defaults.sh`: known settings to begin with.
    Defaults,
    /// A sysctl by its name with dots, and its value.
    Sysctl(String, String),
    /// `ip route change`: attributes with their values.
    Route(Vec<(String, String)>),
    /// `tc qdisc`: its kind and options; none where it is deleted.
    Qdisc(Option<(String, Vec<String>)>),
    /// `ethtool -K`: whether super-packets reach the device.
    Segmentation(bool),
    /// Nothing that concerns a connection.
    Nothing,
}

/// The settings of a shell command; else the part that is none.
pub fn settings(text: &str) -> Result<Vec<Setting>, String> {
    let mut list = Vec::new();
    for words in commands(text)? {
        list.extend(setting(&words).ok_or_else(|| words.join(" "))?);
    }
    Ok(list)
}

/// Commands as words: by lines, `;` and `&&`, with quotes taken off and `\` before the end of a line.
fn commands(text: &str) -> Result<Vec<Vec<String>>, String> {
    let (mut all, mut words) = (Vec::new(), Vec::new());
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(end), _) if c == end => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') => {
                while characters.next_if(|&c| c == ' ' || c == '\t' || c == '\r').is_some() {}
                if characters.next_if_eq(&'\n').is_none() {
                    return Err("\\".to_owned());
                }
                words.extend(word.take());
            }
            (None, '\n' | ';' | '&') => {
                words.extend(word.take());
                all.push(core::mem::take(&mut words));
            }
            (None, '#') if word.is_none() => while characters.next_if(|&c| c != '\n').is_some() {},
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a text without an end".to_owned());
    }
    words.extend(word.take());
    all.push(words);
    all.retain(|words| !words.is_empty());
    Ok(all)
}

fn setting(words: &[String]) -> Option<Vec<Setting>> {
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.starts_with("2>")).collect();
    let (name, rest) = words.split_first()?;
    let name = name.rsplit('/').next().unwrap_or(name);
    if name == "defaults.sh" {
        return Some(vec![Setting::Defaults]);
    }
    if name.starts_with("sysctl_restore_") {
        return Some(vec![Setting::Nothing]);
    }
    match name {
        "set_sysctls.py" | "sysctl" => rest
            .iter()
            .filter(|word| !word.starts_with('-'))
            .map(|word| {
                let (name, value) = word.split_once('=')?;
                Some(Setting::Sysctl(sysctl(name), value.trim().to_owned()))
            })
            .collect(),
        "echo" => match rest {
            [value, ">", file] => Some(vec![Setting::Sysctl(sysctl(file), (*value).to_owned())]),
            _ => None,
        },
        "ip" => {
            let rest = rest.strip_prefix(&["-6"]).unwrap_or(rest);
            match rest {
                ["tcp_metrics", ..] => Some(vec![Setting::Nothing]),
                ["route", "change" | "replace" | "add", attributes @ ..] => {
                    let mut list = Vec::new();
                    let mut words = attributes.iter().skip(1);
                    while let Some(name) = words.next() {
                        let mut value = words.next()?;
                        if *value == "lock" {
                            value = words.next()?;
                        }
                        list.push(((*name).to_owned(), (*value).to_owned()));
                    }
                    Some(vec![Setting::Route(list)])
                }
                _ => None,
            }
        }
        "tc" => match rest {
            ["qdisc", "del" | "delete", ..] => Some(vec![Setting::Qdisc(None)]),
            ["qdisc", "add" | "replace" | "change", "dev", _, "root", kind, options @ ..] => {
                let options = options.iter().map(|&word| word.to_owned()).collect();
                Some(vec![Setting::Qdisc(Some(((*kind).to_owned(), options)))])
            }
            _ => None,
        },
        "ethtool" => match rest {
            ["-K", _, features @ ..] => features
                .chunks(2)
                .map(|pair| match pair {
                    ["tso" | "gso" | "gro", state @ ("on" | "off")] => {
                        Some(Setting::Segmentation(*state == "on"))
                    }
                    _ => None,
                })
                .collect(),
            _ => None,
        },
        // A file of zeros: what it is for shows in the packets.
        "rm" | "dd" if rest.iter().any(|word| word.ends_with("testfile")) => Some(vec![Setting::Nothing]),
        "true" | ":" => Some(vec![Setting::Nothing]),
        _ => None,
    }
}

/// A sysctl's name with dots, from its file or its name.
fn sysctl(name: &str) -> String {
    name.strip_prefix("/proc/sys/").unwrap_or(name).replace('/', ".")
}
