//! Each row of the table of parameters is a field of its own, whose value can be told and taken.

use farpath_tcp::Config;
use farpath_tcp::config::{Kind, Parameter, Value, parameters};
use std::collections::BTreeSet;

/// Values that `parameter` can have, its bounds among them.
fn values(parameter: &Parameter) -> Vec<Value> {
    let given = match parameter.kind {
        Kind::Switch => vec![Value::Switch(false), Value::Switch(true)],
        Kind::Word(words) => words.iter().map(|word| Value::Word(word.name)).collect(),
        _ => [*parameter.within.start(), *parameter.within.end()].map(Value::Number).to_vec(),
    };
    let absent = parameter.absent.map(|_| Value::Absent);
    given.into_iter().chain(absent).collect()
}

#[test]
fn each_parameter_is_a_field_of_its_own() {
    let keys: Vec<String> = parameters().map(Parameter::key).collect();
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "two of one name");
    for parameter in parameters() {
        for value in values(parameter) {
            let mut config = Config::default();
            assert!(parameter.set(&mut config, value), "{}: {value:?}", parameter.key());
            assert_eq!(parameter.get(&config), value, "{}", parameter.key());
            let others = parameters().filter(|other| other.key() != parameter.key());
            for other in others {
                assert_eq!(other.get(&config), other.get(&Config::default()), "{}", other.key());
            }
        }
    }
}

#[test]
fn a_former_key_names_what_took_its_place() {
    for parameter in parameters() {
        for old in parameter.formerly {
            let beside = |other: &Parameter| other.section == parameter.section && other.name == old.name;
            assert!(!parameters().any(beside), "{}: {} is read", parameter.key(), old.name);
            if let Some((_, word)) = old.word {
                assert!(values(parameter).contains(&Value::Word(word)), "{}: {word}", parameter.key());
            }
        }
    }
}

#[test]
fn what_is_no_value_of_a_parameter_is_refused_and_changes_nothing() {
    for parameter in parameters() {
        let mut config = Config::default();
        let other_kind = match parameter.kind {
            Kind::Switch => Value::Number(1),
            _ => Value::Switch(true),
        };
        assert!(!parameter.set(&mut config, other_kind), "{}", parameter.key());
        assert!(!parameter.set(&mut config, Value::Word("no such word")), "{}", parameter.key());
        let (least, most) = (*parameter.within.start(), *parameter.within.end());
        for beyond in [least.checked_sub(1), most.checked_add(1)].into_iter().flatten() {
            assert!(!parameter.set(&mut config, Value::Number(beyond)), "{}: {beyond}", parameter.key());
        }
        if parameter.absent.is_none() {
            assert!(!parameter.set(&mut config, Value::Absent), "{}", parameter.key());
        }
        assert_eq!(config, Config::default(), "{}", parameter.key());
    }
}
