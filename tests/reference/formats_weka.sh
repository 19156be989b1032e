#!/bin/sh
# Predictions as Weka's command line writes them. Run from the repository root: WEKA=/path/to/weka.jar sh tests/reference/formats_weka.sh
set -e
out=tests/files
data=/tmp/weka_example.arff
{
  echo "@relation example"
  echo "@attribute id string"
  echo "@attribute a numeric"
  echo "@attribute b numeric"
  echo "@attribute class {yes,no,'not known'}"
  echo "@data"
  awk 'BEGIN { srand(5); split("yes,no,'"'not known'"'", c, ","); for (i = 1; i <= 30; i++) { k = 1 + (i % 3); printf "s%02d,%.3f,%.3f,%s\n", i, k + 2 * rand(), 2 * k + 3 * rand(), c[k] } }'
} > $data
number=/tmp/weka_number.arff
sed -e "s/@attribute class.*/@attribute class numeric/" -e "s/,yes$/,1.5/; s/,no$/,2.5/; s/,'not known'$/,4/" $data > $number
run() { # class, data, seed, output options
  java -cp "$WEKA" weka.classifiers.meta.FilteredClassifier -F "weka.filters.unsupervised.attribute.RemoveType -T string" \
    -W "$1" -t "$2" -x 5 -s "$3" -classifications "weka.classifiers.evaluation.output.prediction.CSV $4" > /dev/null 2>&1
}
run weka.classifiers.bayes.NaiveBayes $data 1 "-p first -distribution -file $out/weka_distribution.csv"
run weka.classifiers.bayes.NaiveBayes $data 1 "-p first -file $out/weka_prediction.csv"
run weka.classifiers.bayes.NaiveBayes $data 1 "-distribution -file $out/weka_no_ids.csv"
run weka.classifiers.functions.LinearRegression $number 1 "-p first -file $out/weka_regression.csv"
java -cp "$WEKA" weka.core.Version 2> /dev/null | head -1 | sed 's/^/Weka /' > $out/weka_version.txt
java -cp "$WEKA" weka.experiment.Experiment -r -T $data \
  -D "weka.experiment.CSVResultListener -O $out/weka_experimenter.csv" \
  -P weka.experiment.CrossValidationResultProducer -- -X 3 \
  -W weka.experiment.ClassifierSplitEvaluator -- -W weka.classifiers.rules.ZeroR > /dev/null 2>&1 || true
