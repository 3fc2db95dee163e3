"""Every mistake has its own words, before any work."""

from __future__ import annotations

import decimal

import numpy as np
import pandas as pd
import pytest

import coreset_mcmc as cm
from tests.helpers.table_examples import SIZE, table


def with_values(**columns) -> pd.DataFrame:
    return table().assign(**columns)


def with_value(name: str, value, row: int = 3) -> pd.DataFrame:
    frame = table()
    frame[name] = frame[name].astype(object if isinstance(value, str) else frame[name].dtype)
    frame.loc[row, name] = value
    return frame


MISTAKES = {
    "unknown column": (table, "y ~ X1", r"'X1', which is no column of the table; expected columns among \[x, z, g"),
    "misspelt column": (table, "y ~ my_col", r"Did you mean 'my col'\?"),
    "unknown column in a call": (table, "y ~ np.log(zz)", r"'zz', which is no column.*Did you mean 'z'\?"),
    "unknown response": (table, "yy ~ x", r"'yy', which is no column"),
    "no response": (table, "x + z", "got no response; expected 'response ~ predictors'"),
    "empty formula": (table, "  ", "formula: got '  '; expected text such as 'y ~ x'"),
    "no formula": (table, None, "formula: got None"),
    "nothing right": (table, "y ~", "cannot be parsed"),
    "nothing left": (table, "~ x", "cannot be parsed"),
    "two tildes": (table, "y ~ x ~ z", "cannot be parsed"),
    "unbalanced": (table, "y ~ (x + z", r"cannot be parsed \(Expect '\)'"),
    "closing too often": (table, "y ~ x)", r"something after its end, from '\)'"),
    "open backtick": (table, "y ~ `my col", "a backtick without its partner"),
    "no terms": (table, "y ~ 0", "neither an intercept nor a predictor"),
    "a constant as a term": (table, "y ~ 3 + x", "the constant 3 as a term"),
    "a power of a column": (table, "y ~ x ** 2", r"expected \{x \*\* 2\} for the square"),
    "modulo": (table, "y ~ x % 2", "something after its end, from '%'"),
    "a comparison between terms": (table, "y ~ x > 2", r"'>' between terms|something after its end"),
    "a sum as the response": (table, "y + z ~ x", "a response that is a sum"),
    "response on both sides": (table, "y ~ x + y", "y on both sides of the tilde"),
    "a bar without parentheses": (table, "y ~ x + 1|g", r"a bar outside of parentheses.*Write y ~ x \+ \(1\|g\)"),
    "a bar inside of another": (table, "y ~ ((1|g)|h)", "one inside of another group term"),
    "two bars": (table, "y ~ (x||g)", r"'\|\|'; expected one bar\. Write \(x\|g\)"),
    "groups by an expression": (table, "y ~ (1|np.log(z))", "groups that are not a column"),
    "groups by a sum": (table, "y ~ (1|g + h)", "groups that are not a column"),
    "unknown groups": (table, "y ~ (1|gg)", r"'gg', which is no column.*Did you mean 'g'\?"),
    "one group": (lambda: with_values(g="a"), "y ~ x + (1|g)", "groups 'g': got one group; expected at least two"),
    "a group for each row": (lambda: with_values(k=range(SIZE)), "y ~ (1|k)", "120 different values in 120 rows"),
    "slopes of a constant": (lambda: with_values(x=1.0), "y ~ (x|g)", r"slopes of groups of x, the same in every row"),
    "level of a predictor": (table, "y ~ g['a']", r"g\[\.\.\.\] among the predictors"),
    "unknown function": (table, "y ~ lag(x)", "a call of lag; expected calls of B, C, I"),
    "log as in R": (table, "y ~ log(x)", r"a call of log; expected calls of B, C, I.*Write np\.log\(x\)\."),
    "factor as in R": (table, "y ~ factor(i)", r"a call of factor;.*Write C\(x\)\."),
    "as.factor as in R": (table, "y ~ as.factor(i)", r"a call of as.factor;.*Write C\(x\)\."),
    "ifelse as in R": (table, "y ~ ifelse(x, 1, 0)", r"Write np\.where"),
    "a smooth as in mgcv": (table, "y ~ s(x)", r"Write bs\(x, df=5\)"),
    "a survival response as in R": (table, "Surv(z, i) ~ x", r"Write censored\(time, \{status == 0\}\)"),
    "a caret": (table, "y ~ x^2", r"'\^'; expected \*\* for powers\. Write \{x \*\* 2\}"),
    "a caret inside": (table, "y ~ I(x^2)", r"'\^'; expected \*\* for powers"),
    "all other columns": (
        table,
        "y ~ .",
        r"'\.' for all other columns.*'y ~ x \+ z \+ g \+ h \+ flag \+ i \+ `my col`",
    ),
    "all but one": (table, "y ~ . - z", r"'\.' for all other columns"),
    "levels of an expression": (table, "y ~ C(x + z)", r"C\(\.\.\.\) of an expression"),
    "log of negative numbers": (
        table,
        "y ~ np.log(x - 9)",
        r"term 'np.log\(x - 9\)': got \d+ values that are infinite",
    ),
    "division by zero": (table, "y ~ {1 / i}", "infinite or not a number"),
    "arithmetic with text": (table, "y ~ {g + 1}", "expected terms that can be evaluated"),
    "spline without settings": (table, "y ~ bs(x)", "Must specify either 'df' or 'knots'"),
    "constant column": (lambda: with_values(x=2.0), "y ~ x + z", r"same value in every row \(x = 2\)"),
    "constant text": (lambda: with_values(g="a"), "y ~ g + x", "term 'g': got the same level in every row"),
    "empty cell": (
        lambda: with_values(g=["a", "b"] * (SIZE // 2), k=["u", "v"] * (SIZE // 2)),
        "y ~ g * k",
        r"same value in every row|linearly dependent",
    ),
    "collinear columns": (
        lambda: with_values(w=lambda f: 2 * f["x"] - f["z"]),
        "y ~ x + z + w + i",
        r"linearly dependent terms x, z, w \(120 rows",
    ),
    "more columns than rows": (
        lambda: table().iloc[:5],
        "y ~ poly(x, 2) + z + i + flag",
        "dependent|exactly|constant|same",
    ),
    "copy of the response": (
        lambda: with_values(w=lambda f: 3 * f["y"] - 1),
        "y ~ w",
        "predictors that explain the response exactly",
    ),
    "identifiers": (
        lambda: with_values(name=[f"id{place}" for place in range(SIZE)]),
        "y ~ name",
        "120 different values in 120 rows; expected fewer levels than rows",
    ),
    "numbers of rows as levels": (lambda: with_values(k=range(SIZE)), "y ~ C(k)", "120 different values in 120 rows"),
    "dates": (
        lambda: with_values(day=pd.date_range("2020-01-01", periods=SIZE)),
        "y ~ day",
        "column 'day': got dates",
    ),
    "durations": (lambda: with_values(k=pd.to_timedelta(range(SIZE))), "y ~ k", "got durations"),
    "complex numbers": (lambda: with_values(k=1j), "y ~ k", "got complex numbers"),
    "mixed types": (lambda: with_values(k=[1, "a"] * (SIZE // 2)), "y ~ k", "values of type int, str"),
    "lists": (lambda: with_values(k=[[1]] * SIZE), "y ~ k", "column 'k'"),
    "infinite values": (lambda: with_value("x", np.inf), "y ~ x", r"column 'x': got 1 values.*first in row 3"),
    "infinite response": (lambda: with_value("y", -np.inf), "y ~ x", "column 'y': got 1 values"),
    "huge values": (lambda: with_value("x", 1e300), "y ~ x", r"values as large as 1e\+300"),
    "missing values": (
        lambda: with_value("x", np.nan).assign(z=np.where(np.arange(SIZE) < 2, np.nan, 1.5)),
        "y ~ x + z",
        r"3 of 120 rows with missing values \(x: 1, z: 2; first in row \d+\).*drop_missing=True",
    ),
    "no rows": (lambda: table().iloc[:0], "y ~ x", "table: got 0 rows"),
    "no frame": (dict, "y ~ x", "table: got dict; expected a pandas DataFrame"),
    "repeated columns": (lambda: pd.concat([table(), table()[["x"]]], axis=1), "y ~ x", r"repeated columns \['x'\]"),
    "constant response": (lambda: with_values(y=1.0), "y ~ x", "response 'y': got 1 in every row"),
    "text as the response": (table, "g ~ x", r"text with levels \[a, b, c\]; expected numbers for the family gaussian"),
    "the name of a dimension": (lambda: with_values(draw=lambda f: f["x"]), "y ~ draw", "a name that the result needs"),
    "the name of a parameter": (
        lambda: with_values(sigma=lambda f: f["x"]),
        "y ~ sigma",
        "a name that the result needs",
    ),
    "only an offset": (lambda: with_values(w=lambda f: f["y"]), "y ~ offset(w)", "nothing but its offset"),
    "offset left": (table, "offset(y) ~ x", "offset"),
}


@pytest.mark.parametrize("name", list(MISTAKES))
def test_mistakes(name, capsys):
    make, formula, message = MISTAKES[name]
    with pytest.raises(cm.InputError, match=message):
        cm.regression(formula, make())
    assert capsys.readouterr().out == ""


RESPONSES = {
    "three levels": ("bernoulli", table, "g ~ x", r"3 levels \[a, b, c\]; expected two outcomes"),
    "another level": ("bernoulli", table, "outcome['maybe'] ~ x", r"'maybe', which does not occur.*\[no, yes\]"),
    "a level of numbers": ("bernoulli", table, "success['1'] ~ x", "a level of a column of numbers"),
    "neither 0 nor 1": ("bernoulli", table, "i ~ x", r"rows outside, first [23] in row \d+; expected 0 or 1"),
    "one outcome": ("bernoulli", lambda: with_values(success=1), "success ~ x", "got 1 in every row"),
    "one level": ("bernoulli", lambda: with_values(outcome="yes"), "outcome ~ x", r"1 levels \[yes\]"),
    "negative counts": ("poisson", lambda: with_value("count", -2), "count ~ x", r"1 rows outside, first -2 in row 3"),
    "fractions": ("negativebinomial", table, "z ~ x", "expected counts: whole numbers of at least 0"),
    "no counts at all": ("poisson", lambda: with_values(count=0), "count ~ x", "got 0 in every row"),
    "an unknown family": ("tweedie", table, "z ~ x", "family: got 'tweedie'; expected one of gaussian"),
    "zero amounts": (
        "gamma",
        lambda: with_value("z", 0.0),
        "z ~ x",
        "1 rows outside, first 0 in row 3; expected numbers above 0",
    ),
    "shares of one": (
        "beta",
        lambda: with_value("z", 1.0),
        "z ~ x",
        r"expected numbers between 0 and 1, both excluded",
    ),
    "no trials": ("binomial", table, "count ~ x", r"no number of trials; expected p\(successes, trials\)"),
    "trials elsewhere": (
        "poisson",
        table,
        "p(count, i) ~ x",
        r"'i' as the number of trials; expected a single response",
    ),
    "more successes than trials": (
        "binomial",
        table,
        "p(count, 1) ~ x",
        "whole numbers from 0 to the number of trials",
    ),
    "trials of text": ("binomial", table, "p(count, g) ~ x", "text in the column 'g' of trials"),
    "one argument of p": (
        "binomial",
        table,
        "p(count) ~ x",
        r"p\(\.\.\.\) with 1 argument; expected p\(successes, trials\)",
    ),
    "censored otherwise": ("gamma", table, "censored(z, flag) ~ x", "a censored response for the family gamma"),
    "status in numbers": ("weibull", table, "censored(z, i) ~ x", r"numbers in 'i'.*\{i == 0\}\) if 0 means censored"),
    "another status": (
        "weibull",
        table,
        "censored(z, g) ~ x",
        r"a status \[a, b, c\] in 'g'.*only right-censored|Only right",
    ),
    "intervals": ("weibull", table, "censored(z, x, g) ~ x", r"censored\(\.\.\.\) with 3 arguments"),
    "text without order": (
        "cumulative",
        table,
        "g ~ x",
        r"text without an order \[a, b, c\].*ordered\(g, 'a', 'b', 'c'\)",
    ),
    "an incomplete order": ("cumulative", table, "ordered(g, 'a', 'b') ~ x", r"no place for the levels \[c\]"),
    "an unknown level": ("cumulative", table, "ordered(g, 'a', 'b', 'c', 'd') ~ x", r"levels \[d\] that do not occur"),
    "levels without quotes": ("cumulative", table, "ordered(g, a, b) ~ x", r"each once and in quotes"),
    "an order for others": (
        "poisson",
        table,
        "ordered(g, 'a', 'b', 'c') ~ x",
        "levels in an order for the family poisson",
    ),
    "two ordered levels": (
        "cumulative",
        table,
        "h ~ x",
        r"2 levels \[low, high\]; expected one of three or more levels",
    ),
    "two unordered levels": ("categorical", table, "outcome ~ x", r"2 levels \[no, yes\].*family='bernoulli'"),
    "too many levels": (
        "cumulative",
        table,
        "x ~ z",
        r"120 different values in 120 rows|120 levels; expected at most 50",
    ),
    "thresholds and no intercept": ("cumulative", table, "i ~ 0 + x", "without an intercept for the family cumulative"),
    "levels of an expression as response": ("categorical", table, "{i + 1} ~ x", "an expression or a single level"),
}


@pytest.mark.parametrize("name", list(RESPONSES))
def test_responses_outside_the_family(name):
    family, make, formula, message = RESPONSES[name]
    with pytest.raises(cm.InputError, match=message):
        cm.regression(formula, make(), family=family)


PRIORS = {
    "unknown name": (
        {"xx": "Normal(0, 1)"},
        r"a prior for 'xx'; expected names among \['Intercept', 'coefficients', 'x'",
    ),
    "of another family": ({"nu": "Gamma(2, 0.1)"}, "a prior for 'nu'"),
    "support of a coefficient": ({"x": "HalfNormal(1)"}, "prior of x: got 'HalfNormal"),
    "support of sigma": ({"sigma": "Normal(0, 1)"}, "prior of sigma: got 'Normal"),
    "text": ({"coefficients": "wide"}, "prior of coefficients: got 'wide'"),
    "scale": ({"Intercept": "Normal(0, -1)"}, "prior of Intercept: got sigma = -1"),
    "of groups that there are not": ({"1|g_sigma": "HalfNormal(1)"}, r"a prior for '1\|g_sigma'; expected names among"),
}
LINKS = {
    "identity for counts": (
        "poisson",
        "identity",
        r"'identity' for the family poisson; expected log\. Leave it out: a straight",
    ),
    "identity for a probability": (
        "bernoulli",
        "identity",
        r"expected logit or probit or cloglog\. Leave it out: a straight",
    ),
    "of another family": ("gaussian", "logit", r"'logit' for the family gaussian; expected identity"),
    "unknown": ("gamma", "sqrt", r"'sqrt' for the family gamma; expected log or inverse"),
}


@pytest.mark.parametrize("name", list(LINKS))
def test_links(name):
    family, link, message = LINKS[name]
    with pytest.raises(cm.InputError, match=message):
        cm.regression("y ~ x", table(), family=family, link=link)


OPTIONS = {
    "unknown weights": ({"weights": "ww"}, "weights: got 'ww', which is no column of the table"),
    "misspelt weights": ({"weights": "I"}, r"Did you mean 'i'\?"),
    "weights that are numbers": ({"weights": [1.0]}, "weights: got list; expected the name of a column"),
    "the response as weights": ({"weights": "y"}, "weights: got the response 'y'"),
    "negative weights": ({"weights": "my col"}, r"weights 'my col': got \d+ below 0, first -.* in row \d+"),
    "text as weights": ({"weights": "g"}, "weights: got text in the column 'g'; expected numbers"),
    "no weight at all": ({"weights": "nothing"}, "weights: got 0 in every row"),
    "trials for another family": ({"trials": "i"}, "'i' as the number of trials; expected a single response"),
    "unknown trials": ({"trials": "ii"}, "trials: got 'ii', which is no column"),
    "one row is not rare": ({"lump_rare": 1}, "lump_rare: got 1; expected a whole number of at least 2"),
    "a share is not a number of rows": ({"lump_rare": 0.1}, "lump_rare: got 0.1"),
    "no level is common": (
        {"lump_rare": 100},
        r"lump_rare=100: got no level of column 'g' with 100 rows; the largest has",
    ),
    "an empty filter": ({"where": " "}, "where: got ' '; expected a comparison"),
    "a filter that cannot be parsed": ({"where": "x >"}, "cannot be parsed"),
    "one equality sign": ({"where": "g = 'a'"}, "Equality is =="),
    "an unknown column in a filter": (
        {"where": "xx > 0"},
        r"'xx', which is no column of the table.*Did you mean 'x'\?",
    ),
    "text without quotes": ({"where": "g == a"}, "'a', which is no column of the table"),
    "no condition": ({"where": "x + z"}, "a condition that is a number or text"),
    "a number joined by and": ({"where": "x and z > 1"}, "a number or text joined by and"),
    "an ampersand": ({"where": "(x > 0) & (z > 1)"}, "Write 'and' or 'or'"),
    "a tilde": ({"where": "~(x > 0)"}, r"Write not \(\.\.\.\)"),
    "text and numbers": ({"where": "g > 1"}, "text compared with numbers"),
    "arithmetic with text in a filter": ({"where": "g + 1 > 1"}, "arithmetic with text or dates"),
    "a call in a filter": ({"where": "open('x') > 1"}, "a call of open"),
    "an attribute in a filter": ({"where": "x.values > 1"}, "something that is no condition"),
    "a lambda in a filter": ({"where": "(lambda: x)() > 1"}, "a call of something"),
    "code in a filter": ({"where": "__import__('os').system('ls') == 0"}, "a call of system"),
    "in without a list": ({"where": "g in h"}, "'in' without a list of values"),
    "is": ({"where": "x is None"}, r"the comparison Is|no condition"),
    "no row passes": ({"where": "x > 1000"}, "none of 120 rows for which it holds"),
    "a long filter": ({"where": "x > 0 and " * 2000 + "x > 0"}, "where: got"),
    "a date that is none": (
        {"where": "year(g) > 2000"},
        r"term 'year\(g\)': got '.' in column 'g' \(row 0\); expected dates",
    ),
}


@pytest.mark.parametrize("name", list(OPTIONS))
def test_other_options(name):
    options, message = OPTIONS[name]
    with pytest.raises(cm.InputError, match=message):
        cm.regression("y ~ x + g", with_values(nothing=0.0), **options)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ year(x)", r"term 'year\(x\)': got .* in column 'x' \(row 0\).*a number that is a year needs no call"),
        ("y ~ year(x + 1)", r"year\(\.\.\.\) of something that is no column; expected year\(column\)"),
        ("y ~ month(day)", "'day', which is no column of the table"),
        ("y ~ weekday(x)", r"a call of weekday;.*Write dayofweek\(date\)"),
    ],
)
def test_dates(formula, message):
    with pytest.raises(cm.InputError, match=message):
        cm.regression(formula, table())


@pytest.mark.parametrize("name", list(PRIORS))
def test_priors(name):
    priors, message = PRIORS[name]
    with pytest.raises(cm.InputError, match=message):
        cm.regression("y ~ x", table(), priors=priors)


def test_no_posterior_without_a_prior():
    with pytest.raises(cm.InputError, match="prior of alpha: got Flat; expected a proper prior"):
        cm.regression("count ~ x", table(), family="negativebinomial", priors={"alpha": "Flat"})
    frame = with_values(success=lambda f: (f["x"] > 3).astype(int))
    with pytest.raises(cm.InputError, match="Flat for x, which parts the two outcomes"):
        cm.regression("success ~ x", frame, family="bernoulli", priors={"x": "Flat"})


def test_all_rows_dropped():
    frame = with_values(x=np.nan)
    with pytest.raises(cm.InputError, match=r"none of 120 rows without missing values \(x: 120\)"):
        cm.regression("y ~ x", frame, drop_missing=True)


def test_many_levels():
    frame = pd.concat([table()] * 20, ignore_index=True)
    frame["name"] = [f"id{place // 2}" for place in range(len(frame))]
    with pytest.raises(cm.InputError, match=r"1200 levels; expected at most 1000.*lump_rare=50"):
        cm.regression("y ~ name", frame)


def test_decimal_objects_are_numbers():
    frame = with_values(k=[decimal.Decimal(place) / 7 for place in range(SIZE)])
    assert cm.regression("y ~ k", frame).terms == ("k",)


def test_new_rows_with_other_levels_or_without_columns():
    built = cm.regression("y ~ x + g", table())
    with pytest.raises(cm.InputError, match=r"\(d\) in 'g' are not present in the original data"):
        built.new_rows(pd.DataFrame({"x": [1.0], "g": ["d"]}))
    with pytest.raises(cm.InputError, match=r"new rows: got no column 'g' among x"):
        built.new_rows(pd.DataFrame({"x": [1.0]}))


def test_rows_are_those_of_the_users_table():
    """Also after rows before them were dropped, and whatever the index."""
    frame = with_value("x", np.inf, row=9)
    frame.loc[:3, "z"] = np.nan
    frame.index = frame.index[::-1]
    with pytest.raises(cm.InputError, match=r"column 'x'.*first in row 9"):
        cm.regression("y ~ x + z", frame, drop_missing=True)
    finite = frame.replace({"x": {np.inf: -1.0}}).assign(
        x=lambda f: f["x"].abs() * np.where(np.arange(SIZE) == 9, -1, 1)
    )
    with pytest.raises(cm.InputError, match=r"term 'np.log\(x\)'.*first in row 9"):
        cm.regression("y ~ np.log(x) + z", finite, drop_missing=True)
