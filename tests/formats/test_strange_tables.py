"""Tables as people leave them: what is in them besides predictions is seen, and refused or read as what it is."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cvstats import InputError, load_report, read_predictions

N = 20
RNG = np.random.default_rng(3)
IDS, FOLD = np.arange(1, N + 1), np.arange(N) % 4
Y = np.arange(N) * 7 % 3 % 2
P, Q = (np.round(np.clip(share * Y + 0.6 * RNG.random(N), 0.01, 0.99), 4) for share in (0.35, 0.2))
LONG = pd.DataFrame(
    {
        "sample": np.tile(IDS, 2), "configuration": np.repeat(["a", "b"], N), "fold": np.tile(FOLD, 2),
        "prediction": np.concatenate([P, Q]), "label": np.tile(Y, 2),
    }
)  # fmt: skip
CUBE = read_predictions(LONG)


def wide(**columns):
    return pd.DataFrame({"sample": IDS, "label": Y, **columns})


def save(folder, text, name="mine.csv"):
    path = folder / name
    path.write_text(text)
    return path


def same(cube, other=CUBE):
    return cube.drop_attrs().identical(other.drop_attrs())


# -- how text is written


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas_are_read_in_any_column_of_numbers(tmp_path, separator):
    whole = LONG.assign(label=LONG["sample"] + 0.5, prediction=LONG["prediction"].round(0))
    whole.loc[2 * N - 1, "prediction"] = 0.25  # the only fraction is in the last row
    for table in (LONG, whole, LONG.assign(configuration=LONG["configuration"].map({"a": "C=0,5", "b": "1,5"}))):
        path = tmp_path / "mine.csv"
        table.to_csv(path, sep=separator, decimal=",", index=False)
        assert same(read_predictions(path), read_predictions(table))


def test_ids_with_commas_stay_as_they_are_written(tmp_path):
    table = LONG.assign(sample=[f"{i},5" for i in LONG["sample"]])
    table.to_csv(tmp_path / "mine.csv", sep=";", index=False)
    assert read_predictions(tmp_path / "mine.csv")["sample"].values[0] == "1,5"


def test_commas_that_are_no_decimal_commas_are_no_numbers(tmp_path):
    text = "sample;label;prediction;note\n" + "".join(f"{i};{i}.5;1.10{i % 10},5;x\n" for i in range(1, 9))
    with pytest.raises(InputError, match=r"1\.101,5"):
        read_predictions(save(tmp_path, text))


def test_spaces_behind_separators_are_no_part_of_the_cells(tmp_path):
    text = LONG.assign(label=np.where(LONG["label"], "ill", "well")).to_csv(index=False)
    right = read_predictions(save(tmp_path, text), positive="ill")
    assert same(read_predictions(save(tmp_path, text.replace(",", ", ")), positive="ill"), right)
    odd = "sample,configuration,prediction,label\n1, a,.5,0\n2, a,.25,1\n"
    assert read_predictions(save(tmp_path, odd))["configuration"].values.tolist() == [" a"]


@pytest.mark.parametrize("above", ["sep=;\n", "My results\n", "My results;;;;\n"])
def test_lines_above_the_header_are_named(tmp_path, above):
    text = above + LONG.to_csv(index=False, sep=";")
    with pytest.raises(InputError, match=r"the first line, '(sep=|My results)', is no header; delete what is above"):
        read_predictions(save(tmp_path, text))


def test_comments_above_the_header_are_suspected(tmp_path):
    with pytest.raises(InputError, match=r"only one column, '# mine', .* or there are lines above the header"):
        read_predictions(save(tmp_path, "# mine\n# 2024\n" + LONG.to_csv(index=False)))


@pytest.mark.parametrize("table", [LONG, wide(lr=P, rf=Q)], ids=["long", "wide"])
def test_a_header_that_comes_again_is_named(tmp_path, table):
    text = table.to_csv(index=False)
    with pytest.raises(InputError, match=rf"row {len(table) + 1} repeats the header, as where two tables were put"):
        read_predictions(save(tmp_path, text + text))


def test_empty_columns_without_a_name_are_no_columns(tmp_path):
    text = wide(lr=P, rf=Q).to_csv(index=False)
    for end in (",\n", ",,\n"):
        cube = read_predictions(save(tmp_path, text.replace("\n", end)))
        assert cube["configuration"].values.tolist() == ["lr", "rf"]
    assert same(read_predictions(save(tmp_path, LONG.to_csv(index=False).replace("\n", ",\n"))))


def test_row_numbers_that_pandas_wrote_and_read_again_are_no_configuration():
    table = wide(lr=100 * P, rf=100 * Q).assign(label=IDS / 7)
    table.insert(0, "Unnamed: 0", np.arange(N))
    assert read_predictions(table)["configuration"].values.tolist() == ["lr", "rf"]


@pytest.mark.parametrize("written", ["0.1_1", "٠.٥"])
def test_only_plain_numbers_are_numbers(tmp_path, written):
    table = LONG.astype({"prediction": str})
    table.loc[3, "prediction"] = written
    table.to_csv(tmp_path / "mine.csv", index=False)
    with pytest.raises(InputError, match=rf"column 'prediction' holds text among numbers: '{written}' in row 4"):
        read_predictions(tmp_path / "mine.csv")


# -- columns that are no configurations


@pytest.mark.parametrize(
    "names", [("no", "yes"), ("p_no", "p_yes"), ("no_prob", "yes_prob"), ("Prob(no)", "Prob(yes)")]
)
def test_columns_named_like_the_classes_are_their_probabilities(names):
    table = wide(**{names[1]: P, names[0]: 1 - P}).assign(label=np.where(Y, "yes", "no"))
    for given in (table, table.rename(columns={"sample": "id"})):
        cube = read_predictions(given, positive="yes")
        assert cube.sizes["configuration"] == 1
        np.testing.assert_array_equal(cube.values[:, 0], P)
    three = table.rename(columns={names[0]: "0", names[1]: "1"}).assign(label=Y)
    assert np.array_equal(read_predictions(three)[:, 0], P)


def test_columns_named_like_the_classes_are_not_configurations_by_accident():
    numbered = wide(**{str(i): P if i % 2 else Q for i in range(4)})
    assert read_predictions(numbered).sizes["configuration"] == 4
    with pytest.raises(
        InputError, match=r"'0', '1' should be the classes, but do not add up to one\. If each is a conf"
    ):
        read_predictions(numbered[["sample", "label", "0", "1"]])
    mapped = read_predictions(numbered, columns={"prediction": ["0", "1"]})
    assert mapped["configuration"].values.tolist() == ["0", "1"]
    mixed = wide(no=1 - P, yes=P, lr=Q).assign(label=np.where(Y, "yes", "no"))
    with pytest.raises(InputError, match=r"columns 'no', 'yes' are called like the classes, but 'lr' not"):
        read_predictions(mixed, positive="yes")
    three = wide(a=P / 2, b=P / 2, c=1 - P).assign(label=np.array(["a", "b", "c"])[IDS % 3])
    assert sorted(read_predictions(three)["label_class"].values) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "names",
    ["rep1 rep2", "repeat_1 repeat_2", "pred_rep1 pred_rep2", "oof_fold1 oof_fold2", "mean lower upper", "lr residual",
     "pred_mean pred_std", "lr correct", "lr rf split", "lr patient_id", "lr rf error", "y_pred_run1 y_pred_run2"],
)  # fmt: skip
def test_columns_that_say_they_are_something_else_are_no_configurations(names):
    values = dict(zip(names.split(), [P, Q, Q], strict=False))
    for given in (wide(**values).rename(columns={"sample": "id", "label": "target"}), wide(**values)):
        with pytest.raises(InputError):
            read_predictions(given)
    mapped = read_predictions(given, columns={"sample": "sample", "prediction": [*values]})
    assert mapped["configuration"].values.tolist() == [*values]


@pytest.mark.parametrize("names", ["predicted probability", "y_pred y_proba", "predicted_class probability_1"])
def test_classes_beside_their_probability_are_no_configuration(names, capsys):
    said, probability = names.split()
    cube = read_predictions(wide(**{said: (P > 0.5).astype(int), probability: P}))
    assert np.array_equal(cube, P[:, None])
    assert cube["kind"] == "probability"


@pytest.mark.parametrize("names", ["m1 m2", "prob1 prob2", "lr mean_rank_model", "pred_a pred_b", "lr risk"])
def test_columns_that_may_be_configurations_are(names, capsys):
    values = dict(zip(names.split(), [P, Q], strict=True))
    assert read_predictions(wide(**values)).sizes["configuration"] == 2


def test_the_layout_that_comes_closest_says_what_is_in_its_way():
    with pytest.raises(
        InputError, match=r"'wide', but that has no columns like 'residual'\..*columns=\{'prediction': \['lr'\]"
    ):
        read_predictions(wide(lr=P, residual=Q))
    with pytest.raises(InputError, match=r"Closest: 'wide', but that has no columns like 'repeat'"):
        read_predictions(wide(repeat=1, lr=P))


@pytest.mark.parametrize("names", ["P (class={})", "confidence({})", "prob_class_{}", "proba of {}", "{}_proba"])
def test_words_around_a_class_are_seen_through(names, capsys):
    """As KNIME, RapidMiner and people write them, beside the predicted class."""
    table = pd.DataFrame({"row ID": IDS, "class": np.where(Y, "ill", "well"), "Prediction (class)": "well"})
    table = table.assign(**{names.format(label): p for label, p in (("well", 1 - P), ("ill", P))})
    assert np.array_equal(read_predictions(table, positive="ill")[:, 0], P)


def test_probability_of_the_predicted_class_is_not_that_of_one_class(capsys):
    said = np.where(P > 0.5, "yes", "no")
    table = pd.DataFrame({"id": IDS, "truth": np.where(Y, "yes", "no"), "pred": said, "prob": P})
    assert np.array_equal(read_predictions(table, positive="yes")[:, 0], P)
    table["prob"] = np.maximum(P, 1 - P)
    with pytest.raises(InputError, match=r"'prob' is never below one half, though 'pred' holds both classes: it seems"):
        read_predictions(table, positive="yes")
    assert read_predictions(table, positive="yes", columns={"prediction": "pred"})["kind"] == "label"


def test_inner_predictions_are_not_read_as_outer_ones():
    table = LONG.rename(columns={"fold": "inner_fold"}).assign(outer_fold=1)
    with pytest.raises(InputError, match=r"column 'inner_fold' says that these predictions were made inside the train"):
        read_predictions(table)
    assert (
        load_report(read_predictions(table, columns={"fold": "inner_fold", "prediction": "prediction"}))["folds"] == 4
    )


# -- rows that are no predictions, and values that are not what they seem


@pytest.mark.parametrize("name", ["Total", "Mean", "grand total"])
def test_totals_at_the_bottom_are_no_samples(name):
    row = {"sample": name, "label": Y.sum(), "lr": P.sum(), "rf": Q.sum()}
    table = pd.concat([wide(lr=P, rf=Q).astype({"sample": str}), pd.DataFrame([row])])
    with pytest.raises(InputError, match=rf"the last sample is called '{name}': is it a total of the rows above\?"):
        read_predictions(table)


@pytest.mark.parametrize("column", ["set", "split", "fold", "Data Set"])
def test_rows_of_training_sets_are_refused_wherever_they_are_named(tmp_path, column):
    table = LONG.assign(**{column: np.where(LONG["sample"] % 2, "Train", "test")})
    table.to_csv(tmp_path / "mine.csv", index=False)
    pytest.importorskip("pyarrow")
    table.to_parquet(tmp_path / "mine.parquet", index=False)
    for given in (table, tmp_path / "mine.csv", tmp_path / "mine.parquet"):
        for columns in (None, {"prediction": ["prediction"]}):  # which leaves other columns out
            with pytest.raises(
                InputError, match=rf"column '{column}' holds 'Train', 'test'; keep the rows of test sets"
            ):
                read_predictions(given, columns=columns)
    with pytest.raises(InputError, match="holds 'train'; keep the rows of test sets only"):
        read_predictions(LONG.assign(set="train"))
    assert read_predictions(LONG.assign(set="test")).drop_vars("set").equals(CUBE)


def test_a_fold_of_minus_one_is_no_fold():
    table = LONG.assign(fold=LONG["fold"].where(LONG["sample"] != 4, -1))
    with pytest.raises(InputError, match="column 'fold' is -1 in rows 4, 24, so the sample is in no test set"):
        read_predictions(table)
    table["prediction"] = table["prediction"].where(table["sample"] != 4)
    assert read_predictions(table)["fold"].values[3] == -1


@pytest.mark.parametrize("written", ["{:.4f}%", "0,{:.0f}", "1,0{:02.0f}.5", "${:.0f}", "\u2212{:.4f}", "{:.0f}/100"])
def test_numbers_in_other_words_are_not_classes(tmp_path, written):
    table = LONG.assign(prediction=[written.format(100 * p) for p in LONG["prediction"]])
    table.to_csv(tmp_path / "mine.csv", index=False)
    with pytest.raises(
        InputError, match=r"column 'prediction' holds text among numbers: .* Write numbers as 0\.5 \(no"
    ):
        read_predictions(tmp_path / "mine.csv")
    with pytest.raises(
        InputError, match="predictions are numbers written as text, some or all; convert them to numbers"
    ):
        read_predictions(LONG.astype({"prediction": str}))


def test_probabilities_beyond_their_ends_by_rounding_stay_probabilities():
    for beyond, right in ((-1e-17, 0), (1 + 2e-16, 1), (1.00000012, 1)):
        table = LONG.assign(prediction=LONG["prediction"].where(LONG["sample"] != 4, beyond))
        for kind in (None, "probability"):
            cube = read_predictions(table, kind=kind)
            assert cube["kind"] == "probability"
            assert (cube.sel(sample=4) == right).all()
            assert "were set to 0 and 1: rounding" in load_report(cube)["notes"][0]
            assert np.array_equal(cube.drop_sel(sample=4), CUBE.drop_sel(sample=4))
        assert (read_predictions(table, kind="score").sel(sample=4) == beyond).all()
        numbers = read_predictions(table.assign(label=table["sample"] / 7))
        assert (numbers.sel(sample=4) == beyond).all()
    apart = LONG.assign(prediction=LONG["prediction"] - 0.02)
    assert read_predictions(apart)["kind"] == "score"
    values = {"prediction_a": -1e-9, "prediction_b": 0.5, "prediction_c": 0.5 + 1e-9}
    three = LONG.drop(columns="prediction").assign(label=np.array(["a", "b", "c"])[LONG["sample"] % 3], **values)
    assert read_predictions(three)["kind"] == "probability"


def test_codes_of_classes_with_names_are_asked_for():
    words = LONG.assign(label=np.where(LONG["label"], "yes", "no"), prediction=(LONG["prediction"] > 0.5).astype(int))
    with pytest.raises(
        InputError, match=r"predictions are 0 or 1 throughout, but the classes are 'no', 'yes'\. If they"
    ):
        read_predictions(words, positive="yes")
    assert read_predictions(words, positive="yes", kind="probability")["kind"] == "probability"
    trees = words.assign(prediction=words["prediction"].where(words["sample"] != 3, 0.75))
    assert read_predictions(trees, positive="yes")["kind"] == "probability"


@pytest.mark.parametrize("name", ["mine.pkl", "mine.pickle", "mine.joblib"])
def test_pickles_of_any_age_are_called_pickles(tmp_path, name):
    with pytest.raises(InputError, match="this is a Python pickle, which is never opened"):
        read_predictions(save(tmp_path, "ccopy_reg\n_reconstructor\np0\n", name))


def test_repeats_that_no_sample_returns_in_are_folds():
    with pytest.raises(
        InputError, match=r"no sample is predicted in more than one repeat: .* columns=\{'fold': 'repeat'"
    ):
        read_predictions(LONG.rename(columns={"fold": "repeat"}))
    assert same(read_predictions(LONG.rename(columns={"fold": "repeat"}), columns={"fold": "repeat"}))
    assert read_predictions(LONG.assign(repeat=1)).sizes["repeat"] == 1


def test_a_row_for_each_class_is_not_two_configurations():
    rows = [(i, "m", k, p, t) for i, v, t in zip(IDS, P, Y, strict=True) for k, p in ((0, 1 - v), (1, v))]
    table = pd.DataFrame(rows, columns=["sample", "configuration", "class", "prediction", "label"])
    with pytest.raises(InputError, match=r"Column 'class' names the class of each row: give each class a column, pred"):
        read_predictions(table)


# -- several files, arrays, workbooks, Parquet, netCDF


@pytest.mark.parametrize("names", [("rep1", "rep2"), ("fold1", "fold2"), ("lr", "truth"), ("test", "train")])
def test_files_of_repeats_folds_or_the_truth_are_no_configurations(tmp_path, names):
    paths = {
        name: save(tmp_path, wide(prediction=p).to_csv(index=False), f"{name}.csv")
        for name, p in zip(names, (P, Q), strict=True)
    }
    for given in (tmp_path, [*paths.values()]):
        with pytest.raises(InputError, match=rf"files are called .*'{names[1]}', but each file is one configuration"):
            read_predictions(given)
    assert read_predictions(paths)["configuration"].values.tolist() == [*names]


def test_hidden_files_are_no_tables(tmp_path):
    for name, p in (("lr", P), ("rf", Q)):
        save(tmp_path, wide(prediction=p).to_csv(index=False), f"{name}.csv")
        save(tmp_path, "\x00\x05", f"._{name}.csv")
        save(tmp_path, "PK", f"~${name}.xlsx")
    assert read_predictions(tmp_path)["configuration"].values.tolist() == ["lr", "rf"]


def test_tables_without_ids_are_matched_by_row_only_if_they_can_be(capsys):
    tables = {name: pd.DataFrame({"y_true": 1, "y_proba": p}) for name, p in (("a", P), ("b", Q))}
    assert read_predictions(tables).sizes == {"sample": N, "configuration": 2}
    tables["b"] = tables["b"][:-2]
    with pytest.raises(
        InputError, match=r"samples cannot be matched between tables 'a', 'b': .* these have 20, 18\. Add"
    ):
        read_predictions(tables)
    with pytest.raises(InputError, match=r"and these have 20, 'named ones'"):
        read_predictions({"a": tables["a"], "b": pd.DataFrame({"id": IDS, "y_true": 1, "y_proba": Q})})


def test_arrays_are_judged_as_columns_are():
    for odd in ({"y_pred": P > 0.5, "y_proba": P}, {"lr": P, "idx": IDS}, {"rep1": P, "rep2": Q}):
        with pytest.raises(InputError, match=rf"arrays .*'{[*odd][-1]}' are not called like configurations"):
            read_predictions({"y": Y, **odd})
    cube = read_predictions({"y": Y, "lr": np.where(IDS == 3, -1e-17, P)})
    assert cube["kind"] == "probability"
    assert cube.values[2, 0] == 0
    assert "were set to 0 and 1" in load_report(cube)["notes"][-1]
    with pytest.raises(InputError, match="predictions are 0 or 1 throughout, but the classes are 'b', 'a'"):
        read_predictions({"y": np.where(Y, "a", "b"), "lr": (P > 0.5).astype(int)}, positive="a")


def test_titles_of_workbooks_are_no_headers(tmp_path):
    pytest.importorskip("openpyxl")
    for start in (0, 1):
        with pd.ExcelWriter(tmp_path / "mine.xlsx") as book:
            pd.DataFrame([["My results"]]).to_excel(book, header=False, index=False, startrow=start)
            LONG.to_excel(book, startrow=start + 2, index=False)
        with pytest.raises(InputError, match=r"the first line names no columns; delete what is above the header"):
            read_predictions(tmp_path / "mine.xlsx")
    words = LONG.astype({"prediction": object})
    words.loc[3, "prediction"] = "n/a"
    words.to_excel(tmp_path / "mine.xlsx", index=False)
    with pytest.raises(InputError, match=r"column 'prediction' mixes types 'float', 'str'"):
        read_predictions(tmp_path / "mine.xlsx")


def test_parquet_columns_of_nothing_and_of_decimals(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    from decimal import Decimal

    columns = LONG.to_dict("list") | {"prediction": [Decimal(str(p)) for p in LONG["prediction"]]}
    parquet.write_table(arrow.table({**columns, "note": arrow.nulls(2 * N)}), tmp_path / "mine.parquet")
    cube = read_predictions(tmp_path / "mine.parquet")
    assert same(cube)
    assert load_report(cube)["ignored_columns"] == ["note"]


def test_a_foreign_netcdf_file_with_predictions_is_no_cube(tmp_path):
    pytest.importorskip("h5netcdf")
    CUBE.drop_vars(["label", "kind", "positive", "threshold"]).drop_attrs().to_dataset().to_netcdf(tmp_path / "mine.nc")
    with pytest.raises(
        InputError, match=r"mine\.nc: holds no cube: there is no coordinate 'label'\. Make it with as_cube"
    ):
        read_predictions(tmp_path / "mine.nc")


# -- probabilities of which class?


@pytest.mark.parametrize("tool", ["weka", "pycaret"])
def test_probability_of_one_class_is_not_that_of_the_predicted_one(tool):
    names, said = np.array(["no", "yes"]), (P > 0.5).astype(int)
    for score in (np.maximum(P, 1 - P), P):
        if tool == "weka":
            code = np.array(["1:no", "2:yes"])
            table = {"inst#": IDS, "actual": code[Y], "predicted": code[said], "error": "", "prediction": score}
        else:
            table = {"target": names[Y], "prediction_label": names[said], "prediction_score": score}
        if score is not P:
            np.testing.assert_allclose(read_predictions(pd.DataFrame(table), positive="yes")[:, 0], P, atol=1e-12)
            continue
        with pytest.raises(
            InputError, match="no threshold leads from the probabilities of the predicted class to these"
        ):
            read_predictions(pd.DataFrame(table), positive="yes")


def test_probability_of_the_predicted_class_at_another_threshold():
    said = np.where(P > 0.3, "yes", "no")
    table = {
        "target": np.where(Y, "yes", "no"),
        "prediction_label": said,
        "prediction_score": np.where(P > 0.3, P, 1 - P),
    }
    np.testing.assert_allclose(read_predictions(pd.DataFrame(table), positive="yes")[:, 0], P, atol=1e-12)


def test_targets_of_two_values_are_classes():
    assert read_predictions(pd.DataFrame({"target": Y, "prediction": P}))["kind"] == "probability"
    assert read_predictions(pd.DataFrame({"target": IDS / 7, "prediction": P}))["kind"] == "value"


def test_columns_beside_those_of_the_classes_are_no_classes():
    table = wide(prediction_a=1 - P, prediction_b=P).assign(label=np.where(Y, "b", "a"))
    with pytest.raises(
        InputError, match=r"name 'sum', which are no classes of the truth, and do not add up to one\. Drop"
    ):
        read_predictions(table.assign(prediction_sum=1.0), positive="b")
    halves = table.assign(prediction_a=0.5 * (1 - P), prediction_rare=0.5 * (1 - P))
    assert read_predictions(halves).sizes["label_class"] == 3


def test_percentages_are_noted():
    percent = LONG.assign(prediction=100 * LONG["prediction"])
    assert "divide percentages by 100" in load_report(read_predictions(percent))["notes"][0]
    classes = LONG.assign(prediction=20 * LONG["label"], label=20 * LONG["label"])
    for table in (LONG.assign(prediction=4 * LONG["prediction"] - 2), classes):
        assert not load_report(read_predictions(table, positive=None if table is not classes else 20))["notes"]


def test_hints_on_duplicates_do_not_take_any_flag_for_a_class():
    rows = pd.DataFrame({"sample": IDS // 2, "visit": IDS % 2, "label": IDS // 2 % 2, "prediction": P})
    with pytest.raises(InputError, match="If column 'visit' names the configurations"):
        read_predictions(rows.assign(configuration="a"))


def test_random_hold_outs_of_orange_are_no_folds():
    arrays = {"row_indices": np.array([0, 1, 0, 2, 1, 2]), "actual": np.array([0, 1, 0, 1, 1, 1])}
    arrays |= {"predicted": np.array([[0, 1, 1, 1, 0, 1]]), "folds": np.array([[0, 2], [2, 4], [4, 6]])}
    cube = read_predictions(arrays)
    assert cube.sizes == {"sample": 3, "configuration": 1, "repeat": 3}
    assert "fold" not in cube.coords
    assert "overlapping hold-outs" in load_report(cube)["notes"][0]


# -- several columns for each model


@pytest.mark.parametrize("names", ["{}_no {}_yes", "{}.yes {}.no", "no_{} yes_{}", "pred_{}_no pred_{}_yes"])
def test_columns_of_models_by_class_are_their_probabilities(names, capsys):
    values = {}
    for model, p in (("LR", P), ("rf", Q)):
        values |= {name.format(model): p if "yes" in name else 1 - p for name in names.split()}
    table = wide(**values).assign(label=np.where(Y, "yes", "no"))
    for given in (table, table.rename(columns={"sample": "id", "label": "y_true"}))[: 1 + ("pred" in names)]:
        cube = read_predictions(given, positive="yes")
        assert [name.removeprefix("pred_") for name in cube["configuration"].values] == ["LR", "rf"]
        np.testing.assert_array_equal(cube, np.column_stack([P, Q]))
    assert read_predictions(wide(lr_0=P, lr_1=Q, rf_0=Q, rf_1=P)).sizes["configuration"] == 4  # do not add up


@pytest.mark.parametrize(
    "names",
    ["lr_rep1 lr_rep2", "lr_fold1 lr_fold2", "lr_train lr_test", "lr lr_upper", "gp_mean gp_std", "nnSeed1 nnSeed2"],
)
def test_details_of_models_are_no_configurations(names):
    with pytest.raises(InputError, match="Closest: 'wide', but that has no columns like"):
        read_predictions(wide(**dict(zip(names.split(), [P, Q], strict=True))))


@pytest.mark.parametrize(
    "names", ["lr_test rf_test", "lr_prob rf_prob", "naive_error lr", "knn_1 knn_5", "lasso lasso_cv"]
)
def test_models_with_such_names_are_configurations(names):
    assert read_predictions(wide(**dict(zip(names.split(), [P, Q], strict=True)))).sizes["configuration"] == 2


def test_predicted_classes_in_another_spelling_are_no_new_classes():
    names = np.array(["no", "yes"])
    said = pd.DataFrame({"sample": IDS, "label": names[Y], "a": names[Y], "b": np.array(["No", "Yes"])[Y]})
    with pytest.raises(
        InputError, match="predictions hold 'No', 'Yes', written almost like the classes 'no', 'yes'; write"
    ):
        read_predictions(said, positive="yes")
    weka = Path(__file__).parents[1] / "files" / "weka_no_ids.csv"
    with pytest.raises(InputError, match="hold '3:not known', written almost like the classes \"3:'not known'\""):
        read_predictions(weka, columns={"label": "actual", "prediction": "predicted"})
