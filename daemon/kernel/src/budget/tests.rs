//! Tables of the arithmetic.

use loopd_proto::session::{LimitKind, SessionLimits};
use loopd_proto::time::Timestamp;

use super::*;

const DOLLAR: u64 = 1_000_000_000;

fn tokens(max: u64) -> SessionLimits {
    SessionLimits {
        max_tokens: Some(max),
        ..SessionLimits::default()
    }
}

fn dollars(max: f64) -> SessionLimits {
    SessionLimits {
        max_cost_usd: Some(max),
        ..SessionLimits::default()
    }
}

fn call(input: u64, output: u64) -> CallEstimate {
    CallEstimate {
        input_tokens: input,
        output_limit: output,
        price: None,
        nano_credits: 0,
    }
}

fn used_tokens(tokens: u64) -> Spend {
    Spend {
        tokens,
        turns: 1,
        ..Spend::default()
    }
}

fn others(in_flight: usize, tokens: u64, waiting: usize) -> OtherCalls {
    OtherCalls {
        in_flight,
        reserved: Spend {
            tokens,
            turns: in_flight as u64,
            ..Spend::default()
        },
        waiting,
    }
}

/// The granted output, or what else was decided.
fn output(admission: Admission) -> Result<u64, &'static str> {
    match admission {
        Admission::Granted { output_tokens, .. } => Ok(output_tokens),
        Admission::Waits => Err("waits"),
        Admission::Reached(_) => Err("reached"),
        Admission::Unpriced => Err("unpriced"),
    }
}

#[test]
fn tokens_are_reserved_as_far_as_they_fit() {
    // limit, spent, others (in flight, reserved, waiting), input, output limit, decided
    let table = [
        (10_000, 0, (0, 0, 0), 1_000, 4_000, Ok(4_000)),
        (10_000, 0, (0, 0, 0), 1_000, 20_000, Ok(9_000)),
        (10_000, 5_000, (0, 0, 0), 1_000, 20_000, Ok(4_000)),
        (10_000, 5_000, (1, 2_000, 0), 1_000, 20_000, Ok(2_000)),
        // Those that wait get their share.
        (10_000, 0, (1, 1_000, 3), 1_000, 20_000, Ok(2_000)),
        (10_000, 0, (1, 8_000, 3), 1_000, 20_000, Ok(LEAST_OUTPUT)),
        // It fits exactly, and not with one token more.
        (10_000, 0, (1, 8_744, 0), 1_000, 9_000, Ok(256)),
        (10_000, 0, (1, 8_745, 0), 1_000, 9_000, Err("waits")),
        (10_000, 0, (1, 20_000, 0), 1_000, 9_000, Err("waits")),
        // A model that says little needs little.
        (10_000, 0, (1, 8_990, 0), 1_000, 10, Ok(10)),
        // Alone, it is the last call, with what is left and never with nothing.
        (10_000, 8_800, (0, 0, 0), 1_000, 9_000, Ok(256)),
        (10_000, 9_999, (0, 0, 0), 1_000, 9_000, Ok(256)),
        (10_000, 10_000, (0, 0, 0), 1, 9_000, Err("reached")),
        (10_000, 12_000, (3, 9, 9), 1, 9_000, Err("reached")),
        (0, 0, (0, 0, 0), 1, 1, Err("reached")),
    ];
    for (limit, spent, (in_flight, reserved, waiting), input, most, expected) in table {
        let admission = admit(
            &tokens(limit),
            used_tokens(spent),
            others(in_flight, reserved, waiting),
            &call(input, most),
        );
        assert_eq!(
            output(admission),
            expected,
            "{limit} {spent} {in_flight} {reserved} {waiting} {input} {most}"
        );
    }
}

#[test]
fn what_is_reserved_is_what_may_be_used() {
    let admission = admit(
        &tokens(10_000),
        Spend::default(),
        OtherCalls::default(),
        &call(1_000, 500),
    );
    let expected = Spend {
        turns: 1,
        tokens: 1_500,
        ..Spend::default()
    };
    assert!(
        matches!(admission, Admission::Granted { reserved, .. } if reserved == expected),
        "{admission:?}"
    );
}

#[test]
fn money_needs_a_price_and_buys_what_it_buys() {
    let priced = |input, output| CallEstimate {
        price: Some(Price {
            input: 3_000.0,
            output: 15_000.0,
            cache_read: 300.0,
            cache_write: 3_750.0,
        }),
        ..call(input, output)
    };
    let spent = |nano_usd| Spend {
        nano_usd,
        ..Spend::default()
    };
    let alone = OtherCalls::default();
    let decide =
        |limit, spent, call: &CallEstimate| output(admit(&dollars(limit), spent, alone, call));
    assert_eq!(decide(1.0, spent(0), &call(10, 10)), Err("unpriced"));
    assert_eq!(decide(1.0, spent(0), &priced(0, 5_000)), Ok(5_000));
    // A dollar pays for 66,666 tokens of output.
    assert_eq!(decide(1.0, spent(0), &priced(0, 100_000)), Ok(66_666));
    // All input may be written to the cache, which costs more than to read it afresh.
    assert_eq!(decide(1.0, spent(0), &priced(100_000, 100_000)), Ok(41_666));
    assert_eq!(decide(1.0, spent(DOLLAR), &priced(1, 1)), Err("reached"));
    let free = CallEstimate {
        price: Some(Price::FREE),
        ..call(10, 777)
    };
    assert_eq!(decide(1.0, spent(0), &free), Ok(777));
}

#[test]
fn a_call_costs_what_its_tokens_cost() {
    let price = Price {
        input: 3_000.0,
        output: 15_000.0,
        cache_read: 300.0,
        cache_write: 3_750.0,
    };
    let usage = Usage {
        input_tokens: 1_000,
        output_tokens: 100,
        cache_read_tokens: 500,
        cache_write_tokens: 200,
        ..Usage::default()
    };
    // 300 fresh, 500 read, 200 written, 100 out.
    let expected = 300 * 3_000 + 500 * 300 + 200 * 3_750 + 100 * 15_000;
    assert_eq!(price.cost(&usage), expected);
    let odd = Price {
        input: 0.4,
        ..Price::FREE
    };
    let one = Usage {
        input_tokens: 1,
        ..Usage::default()
    };
    assert_eq!(odd.cost(&one), 1, "a cost is rounded up");
}

#[test]
fn turns_and_credits_are_limited_too() {
    let limits = SessionLimits {
        max_turns: Some(3),
        max_ai_credits: Some(2.0),
        ..SessionLimits::default()
    };
    let spent = |turns, nano_credits| Spend {
        turns,
        nano_credits,
        ..Spend::default()
    };
    let decide = |spent, in_flight, charged| {
        let call = CallEstimate {
            nano_credits: charged,
            ..call(10, 99)
        };
        output(admit(&limits, spent, others(in_flight, 0, 0), &call))
    };
    assert_eq!(decide(spent(2, 0), 0, 0), Ok(99));
    assert_eq!(decide(spent(2, 0), 1, 0), Err("waits"));
    assert_eq!(decide(spent(3, 0), 0, 0), Err("reached"));
    assert_eq!(decide(spent(0, DOLLAR), 1, DOLLAR), Ok(99));
    assert_eq!(decide(spent(0, DOLLAR), 1, DOLLAR + 1), Err("waits"));
    assert_eq!(decide(spent(0, DOLLAR), 0, DOLLAR + 1), Ok(99));
    assert_eq!(decide(spent(0, 2 * DOLLAR), 0, 0), Err("reached"));
}

#[test]
fn no_order_of_calls_exceeds_a_limit_by_more_than_the_last_reservation() {
    let limits = tokens(20_000);
    for seed in 0..200_u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut dice = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        let (mut spent, mut flying): (Spend, Vec<Spend>) = (Spend::default(), Vec::new());
        for _ in 0..200 {
            let reserved = flying
                .iter()
                .fold(Spend::default(), |sum, it| sum.plus(*it));
            if dice(2) == 0 && !flying.is_empty() {
                let at = usize::try_from(dice(flying.len() as u64)).unwrap_or(0);
                let held = flying.swap_remove(at);
                // A call uses what was reserved for it, or less.
                spent = spent.plus(used_tokens(dice(held.tokens + 1)));
                continue;
            }
            let beside = OtherCalls {
                in_flight: flying.len(),
                reserved,
                waiting: usize::try_from(dice(4)).unwrap_or(0),
            };
            if let Admission::Granted { reserved, .. } =
                admit(&limits, spent, beside, &call(dice(4_000), dice(8_000) + 1))
            {
                flying.push(reserved);
            }
            let most = flying.iter().map(|it| it.tokens).max().unwrap_or(0);
            let all: u64 = flying.iter().map(|it| it.tokens).sum();
            assert!(
                flying.is_empty()
                    || spent.tokens + all <= 20_000
                    || flying.len() == 1 && spent.tokens < 20_000,
                "seed {seed}: {} spent, {all} reserved in {} calls of at most {most}",
                spent.tokens,
                flying.len()
            );
        }
    }
}

#[test]
fn people_are_warned_once_when_most_is_used() {
    let limits = SessionLimits {
        max_turns: Some(10),
        ..tokens(1_000)
    };
    let kinds = |before, after| -> Vec<LimitKind> {
        let near = nearly_reached(&limits, before, after);
        near.into_iter().map(|it| it.kind).collect()
    };
    let at = |tokens, turns| Spend {
        turns,
        tokens,
        ..Spend::default()
    };
    assert_eq!(kinds(at(0, 0), at(799, 1)), []);
    assert_eq!(kinds(at(799, 1), at(800, 2)), [LimitKind::Tokens]);
    assert_eq!(kinds(at(800, 2), at(900, 3)), []);
    assert_eq!(
        kinds(at(700, 7), at(900, 8)),
        [LimitKind::Tokens, LimitKind::Turns]
    );
    assert_eq!(kinds(at(700, 1), at(1_000, 2)), [], "an error says it then");
    let jumped = |before, after| {
        let over = jumped_over(&limits, before, after);
        over.len()
    };
    assert_eq!(jumped(at(700, 1), at(1_000, 2)), 1);
    assert_eq!(jumped(at(700, 1), at(999, 2)), 0);
    assert_eq!(jumped(at(800, 1), at(1_000, 2)), 0, "a warning came before");
}

#[test]
fn only_time_at_work_counts() {
    let at = Timestamp;
    let mut worked = WorkedTime::default();
    worked.note(at(1_000), false);
    assert_eq!(worked.running_ms(at(5_000)), None);
    worked.note(at(2_000), true);
    worked.note(at(2_500), true);
    assert_eq!(worked.running_ms(at(3_000)), Some(1_000));
    worked.note(at(4_000), false);
    assert_eq!(worked.ms(at(9_000)), 2_000);
    worked.note(at(10_000), true);
    worked.note(at(10_500), true);
    // The daemon died after that, and another one took over much later.
    worked.was_cut();
    worked.note(at(90_000), true);
    worked.note(at(90_100), false);
    assert_eq!(worked.ms(at(99_000)), 2_600);
}
