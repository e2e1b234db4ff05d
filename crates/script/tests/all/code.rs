//! Assertions: what of Python is evaluated, and what is beyond it.

use farpath_script::{CodeOutcome, Value, run_code};

fn lookup(name: &str) -> Option<Value> {
    match name {
        "tcpi_snd_cwnd" => Some(Value::Int(10)),
        "tcpi_rtt" => Some(Value::Int(20_500)),
        "tcpi_options" => Some(Value::Int(7)),
        _ => None,
    }
}

fn run(text: &str) -> CodeOutcome {
    run_code(text, &lookup)
}

#[test]
fn expressions_have_pythons_values() {
    for holds in [
        "1 + 2 * 3 == 7 and not False",
        "-7 // 2 == -4 and -7 % 2 == 1 and 7 // -2 == -4 and 7 % -2 == -1",
        "7 / 2 == 3.5 and 2 ** 10 == 1024",
        "10 <= tcpi_snd_cwnd < 11",
        "tcpi_options & 0x2 and not tcpi_options & 8",
        "tcpi_options | 8 == 15",
        "1 << 4 | 1 == 17",
        "abs(tcpi_rtt - 20000) < 1000",
        "tcpi_snd_cwnd in (9, 10) and 3 not in [1, 2]",
        "max(1, 2, 3) == 3 and min([4, 5]) == 4 and sum((1, 2)) == 3",
        "round(2.5) == 2 and round(3.5) == 4 and int(-1.5) == -1",
        "'%d of %05.1f %s' % (3, 2.25, 'x') == '3 of 002.2 x'",
        "f'{tcpi_snd_cwnd} {tcpi_rtt / 1000:.1f}' == '10 20.5'",
        "(1 if tcpi_rtt else 2) == 1",
        "None is None and True == 1",
    ] {
        assert_eq!(run(&format!("assert {holds}")), CodeOutcome::Holds(String::new()), "{holds}");
    }
}

#[test]
fn statements_stand_on_lines_or_between_semicolons() {
    let text = "least = 9 # segments\nassert tcpi_snd_cwnd >= least, \\\n  tcpi_snd_cwnd; print('cwnd', tcpi_snd_cwnd)\n";
    assert_eq!(run(text), CodeOutcome::Holds("cwnd 10\n".to_owned()));
}

#[test]
fn an_assertion_that_fails_says_its_line_and_message() {
    let outcome = run("\nassert tcpi_snd_cwnd ==\t11, 'cwnd %d' % tcpi_snd_cwnd");
    let CodeOutcome::Fails { line, assertion, message } = outcome else { panic!("{outcome:?}") };
    assert_eq!((line, assertion.as_str(), message.as_deref()), (1, "tcpi_snd_cwnd == 11", Some("cwnd 10")));
}

#[test]
fn what_is_beyond_the_subset_is_said_by_line() {
    for (text, line, words) in [
        ("assert 1\nimport os", 1, "an `assert`, an assignment, `print()` or an expression"),
        ("assert no_such_name", 0, "`no_such_name`"),
        ("assert tcpi_rtt.real", 0, "attributes and indices"),
        ("assert 1 / 0", 0, "a divisor that is not 0"),
        ("assert 'a' < 1", 0, "str and int"),
        ("assert open('x')", 0, "`open()`"),
        ("assert (1", 0, "`)`"),
        ("assert 'x", 0, "a quotation mark"),
        ("assert 1 << 100 == 0", 0, "`<<`"),
        ("assert '%d' % (1, 2)", 0, "as many formats as values"),
    ] {
        let outcome = run(text);
        let CodeOutcome::Beyond { line: found, problem } = outcome else { panic!("{text}: {outcome:?}") };
        assert_eq!(found, line, "{text}");
        assert!(problem.contains(words), "{text}: {problem}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    for text in [
        "(".repeat(1000),
        "-".repeat(1000) + "1",
        "not ".repeat(1000) + "1",
        "1 if 1 else ".repeat(500) + "1",
    ] {
        assert!(matches!(run(&format!("assert {text}")), CodeOutcome::Beyond { .. }));
    }
}
