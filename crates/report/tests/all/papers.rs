//! Claim files that are refused, and checks that catch themselves.

use farpath_report::papers::{Checked, Paper, Runs, Verdict, check_paper, render};
use std::sync::atomic::AtomicBool;

/// A paper with one claim: these lines of it, and one check.
fn paper(claim: &str, check: &str) -> String {
    format!(
        "title = 't'\nauthors = 'a'\npublished_in = 'p'\n[[claim]]\nid = 'R-01'\nstatement = 's'\n{claim}\n\
         [[claim.check]]\nengine = 'predict'\n{check}\n"
    )
}

fn refusal(text: &str) -> String {
    match Paper::parse("some-paper", text) {
        Ok(_) => panic!("was not refused:\n{text}"),
        Err(error) => error.to_string(),
    }
}

fn check_one(text: &str) -> Result<Vec<Checked>, String> {
    let paper = Paper::parse("some-paper", text).map_err(|error| error.to_string())?;
    let mut checked = Vec::new();
    check_paper(&paper, &mut Runs::default(), &AtomicBool::new(false), |c| checked.push(c))
        .map_err(|error| error.to_string())?;
    Ok(checked)
}

const HALF: &str = "formula = 'ratio'\nargs = { a = 1, b = 2 }";

#[test]
fn a_broken_claim_file_is_refused_by_file_line_and_key() {
    let text = paper("", &format!("{HALF}\npublishd = 0.5\nrule = {{ decimals = 1 }}"));
    let message = refusal(&text);
    assert!(message.starts_with("papers/some-paper/claims.toml: "), "{message}");
    assert!(message.contains("publishd") && message.contains("line 12"), "{message}");
    assert!(refusal("title = ").starts_with("papers/some-paper/claims.toml: "));
}

#[test]
fn a_check_that_could_not_fail_is_refused() {
    let prefix = "papers/some-paper/claims.toml: R-01: ";
    for (check, problem) in [
        (format!("{HALF}\npublished = 0.5"), "the check has no rule: it could not fail"),
        (format!("{HALF}\nrule = {{ decimals = 1 }}"), "there is nothing to compare with"),
        ("published = 1\nrule = { decimals = 1 }".to_owned(), "one of `formula`, `experiment`, `stack`"),
        (
            format!("{HALF}\nexperiment = 'geo'\npublished = 1\nrule = {{ decimals = 1 }}"),
            "one of `formula`, `experiment`, `stack`",
        ),
        ("experiment = 'geo'\npublished = 1\nrule = { decimals = 1 }".to_owned(), "`metric` go together"),
        (format!("{HALF}\npublished = 1\ncorrect = 0.5\nrule = {{ decimals = 1 }}"), "with an `erratum`"),
        (
            format!(
                "{HALF}\npublished = 1\ncorrect = 0.5\nrule = {{ decimals = 1 }}\nverdict = 'unclear in the paper'"
            ),
            "with an `unclear`",
        ),
        (format!("{HALF}\npublished = 0.5\nrule = {{ decimals = 1 }}"), "is `verdict = \"arithmetic\"`"),
        (
            format!("{HALF}\npublished = 0.5\nrule = {{ decimals = 1 }}\nverdict = 'fitted'"),
            "the verdict `fitted` needs a `reason`",
        ),
        (
            format!("{HALF}\npublished = 0.5\nrule = {{ decimals = 1 }}\nverdict = 'reproduced'"),
            "follows from the rest: leave it out",
        ),
        (
            "stack = 'riverbed-16'\nverdict = 'arithmetic'\nrule = { at_least = 1 }".to_owned(),
            "is for a `formula`",
        ),
        (
            format!("{HALF}\npublished = 1\nverdict = 'differs'\nrule = {{ decimals = 1 }}"),
            "the verdict `differs` needs a `reason`",
        ),
        (
            "not_run = 'no'\nverdict = 'differs'\nreason = 'r'".to_owned(),
            "goes with neither `correct` nor `not_run`",
        ),
    ] {
        let message = refusal(&paper("", &check));
        assert!(message.starts_with(prefix) && message.contains(problem), "{message}");
    }
    let elsewhere = paper("", &format!("{HALF}\npublished = 0.5\nrule = {{ decimals = 1 }}"));
    assert!(refusal(&elsewhere.replace("'predict'", "'measure'")).contains("`measure` needs `not_run`"));
    let sum = "verdict = 'arithmetic'\nrule = { decimals = 1 }";
    let twice = paper("", &format!("{HALF}\npublished = 0.5\n{sum}"));
    let (head, claim) = twice.split_at(twice.find("[[claim]]").unwrap());
    assert!(refusal(&format!("{head}{claim}{claim}")).contains("two claims of this name"));
    assert!(
        refusal(&format!("{head}[[claim]]\nid = 'R-02'\nstatement = 's'\ncheck = []")).contains("no check")
    );
}

#[test]
fn a_check_that_cannot_be_made_is_a_fault_of_the_file() {
    for (check, problem) in [
        ("formula = 'ratoi'\npublished = 1\nrule = { decimals = 1 }", "no formula `ratoi`"),
        (
            "formula = 'ratio'\nargs = { a = [1, 2], b = [1, 2, 3] }\npublished = 1\nverdict = 'arithmetic'\nrule = { decimals = 1 }",
            "args.a has 2 entries, the longest list 3",
        ),
        (
            "formula = 'packets-of-file'\nargs = { size = 1 }\nresult = 'x'\npublished = 1\nrule = { decimals = 1 }",
            "no result `x`; it has size / mss, segments",
        ),
        ("experiment = 'x'\nmetric = 'timeouts'\nrule = { at_most = 1 }", "there is no experiment `x`"),
        (
            "experiment = 'single-drop'\nmetric = 'timeoutz'\nrule = { at_most = 1 }",
            "there is no metric `timeoutz`",
        ),
        ("stack = 'riverbed-61'\nrule = { at_least = 1 }", "riverbed-61"),
        (
            "stack = 'riverbed-16'\nrule = { at_least = 1 }\nattributes = { 'RTO' = { rto = { initial = 3 } } }",
            "rto.initial",
        ),
    ] {
        let message = check_one(&paper("", check)).expect_err(check);
        assert!(message.starts_with("papers/some-paper/claims.toml: R-01: "), "{message}");
        assert!(message.contains(problem), "{message}");
    }
}

#[test]
fn an_erratum_whose_printed_number_passes_differs() {
    let check = |published: f64| {
        let text = format!("{HALF}\npublished = {published}\ncorrect = 0.5\nrule = {{ within = '1 %' }}");
        check_one(&paper("erratum = 'a slip'", &text)).unwrap().remove(0)
    };
    assert_eq!((check(0.6).verdict, check(0.6).reason.as_str()), (Verdict::Erratum, "a slip"));
    assert_eq!(check(0.502).verdict, Verdict::Differs);
    assert!(check(0.502).reason.contains("what is printed passes the rule too"));
}

#[test]
fn of_a_list_that_holds_in_part_it_is_said_how_many_do() {
    let check = |published: &str| {
        let text = format!(
            "formula = 'ratio'\nargs = {{ a = [1, 3], b = 2 }}\npublished = {published}\nrule = {{ decimals = 1 }}\n\
             verdict = 'in part'\nreason = 'the second is a slip'"
        );
        check_one(&paper("", &text)).unwrap().remove(0)
    };
    let part = check("[0.5, 1.7]");
    assert_eq!((part.verdict, part.recorded), (Verdict::InPart, Verdict::InPart));
    assert!(part.reason.contains("1 of 2 are. the second is a slip"), "{}", part.reason);
    // Neither, and both, are something else, and new.
    assert_eq!(
        (check("[0.7, 1.7]").verdict, check("[0.7, 1.7]").is_as_recorded()),
        (Verdict::Differs, false)
    );
    assert_eq!(check("[0.5, 1.5]").verdict, Verdict::Reproduced);
}

#[test]
fn what_can_be_meant_in_two_ways_is_unclear_and_what_was_chosen_is_fitted() {
    let text = format!(
        "{HALF}\npublished = 0.6\ncorrect = 0.5\nrule = {{ within = '1 %' }}\nverdict = 'unclear in the paper'"
    );
    let unclear = check_one(&paper("unclear = 'of which half is not said'", &text)).unwrap().remove(0);
    assert_eq!((unclear.verdict, unclear.recorded), (Verdict::Unclear, Verdict::Unclear));
    assert_eq!(unclear.reason, "of which half is not said");
    let text = format!(
        "{HALF}\npublished = 0.5\nrule = {{ within = '1 %' }}\nverdict = 'fitted'\nreason = 'b was chosen'"
    );
    let fitted = check_one(&paper("", &text)).unwrap().remove(0);
    assert_eq!((fitted.verdict, fitted.reason.as_str()), (Verdict::Fitted, "b was chosen"));
    assert!(render(&[fitted], Some(100)).contains("R-01 fitted b was chosen"));
}

#[test]
fn a_difference_is_known_where_the_claim_file_says_so() {
    let check = |published: f64, lines: &str| {
        let text = format!("{HALF}\npublished = {published}\nrule = {{ decimals = 1 }}\n{lines}");
        check_one(&paper("", &text)).unwrap()
    };
    let sum = "verdict = 'arithmetic'";
    let known = "verdict = 'differs'\nreason = 'drawn by hand'";
    for (published, lines, recorded, counted, said) in [
        (0.5, sum, "arithmetic", "1 arithmetic", None),
        (0.7, known, "differs", "1 differs", Some("differs, known")),
        (0.7, sum, "arithmetic", "1 not as recorded", Some("differs, new")),
        (0.5, known, "differs", "1 not as recorded", Some("reproduced, new")),
    ] {
        let counted = format!("{counted}; 1 of 1 has a published number");
        let checked = check(published, lines);
        assert_eq!(checked[0].to_json()["recorded"], recorded);
        let text = render(&checked, Some(120));
        assert_eq!(text.lines().last(), Some(counted.as_str()), "{text}");
        assert!(said.is_none_or(|said| text.contains(said)), "{text}");
    }
}

#[test]
fn a_stack_that_has_not_what_was_published_is_named() {
    let stack = "stack = 'riverbed-16'\nrule = { decimals = 0 }\n\
        attributes = { 'Initial RTO: 3000 ms' = { rto = { initial = '3000 ms' } }, \
        'Selective ACK: enabled' = { recovery = { sack = true } } }";
    let checked = check_one(&paper("", stack)).unwrap().remove(0);
    assert_eq!(checked.verdict, Verdict::Differs);
    assert!(checked.reason.contains("1 beside 2"), "{}", checked.reason);
    assert!(checked.reason.contains("riverbed-16 has not: Selective ACK: enabled"), "{}", checked.reason);
}

#[test]
fn an_interrupted_paper_is_no_fault() {
    let paper = Paper::parse(
        "some-paper",
        &paper("", &format!("{HALF}\nverdict = 'arithmetic'\nrule = {{ at_most = 1 }}")),
    )
    .unwrap();
    let mut taken = 0;
    let done = check_paper(&paper, &mut Runs::default(), &AtomicBool::new(true), |_| taken += 1);
    assert_eq!((done.unwrap(), taken), (false, 0));
}
