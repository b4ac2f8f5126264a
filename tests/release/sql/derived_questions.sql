-- outer
SELECT AVG(n) AS a, MAX(n) AS b, MIN(n) AS c, SUM(n) AS d, COUNT(*) AS e FROM {GROUPS}
SELECT MEDIAN(n) AS a, QUANTILE_CONT(n, 0.25) AS b, QUANTILE_DISC(n, 0.6) AS c FROM {DECADES}
SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY n) AS a FROM {DECADES}
SELECT STDDEV(n) AS a, VAR_POP(n) AS b, VARIANCE(n) AS c, STDDEV_POP(n) AS d FROM {BOTH}
SELECT region, n FROM {GROUPS} WHERE n > 200 ORDER BY n DESC
SELECT region, n FROM {GROUPS} t WHERE t.region <> 'N' AND n BETWEEN 10 AND 1000
SELECT region AS r, n * 2 AS twice, n / 10.0 AS tenth FROM {GROUPS}
SELECT region, SUM(n) AS n, AVG(mean) AS m, MAX(total) AS t FROM {BOTH} GROUP BY region
SELECT region, SUM(n) AS n FROM {BOTH} GROUP BY region HAVING SUM(n) > 150
SELECT sex, COUNT(*) AS regions, MAX(n) - MIN(n) AS gap FROM {BOTH} WHERE n > 60 GROUP BY sex
SELECT COUNT(*) FILTER (WHERE n > 200) AS large, SUM(n) FILTER (WHERE region = 'N') AS north FROM {GROUPS}
SELECT COUNT_IF(n > 200) AS large, COUNT(DISTINCT region) AS regions FROM {BOTH}
SELECT SUM(CASE WHEN n > 200 THEN 1 ELSE 0 END) AS large FROM {GROUPS}
SELECT n > 200 AS large, COUNT(*) AS regions, SUM(n) AS people FROM {GROUPS} GROUP BY n > 200
SELECT CASE WHEN n > 200 THEN 'large' ELSE 'small' END AS size, COUNT(*) AS k FROM {GROUPS} GROUP BY 1
SELECT AVG(top) AS a FROM (SELECT region, MAX(n) AS top FROM {BOTH} GROUP BY region) u
SELECT SUM(n) AS s FROM (SELECT region, n FROM {GROUPS} ORDER BY n DESC LIMIT 2) t
SELECT region, n FROM (SELECT region, n FROM {GROUPS} ORDER BY n DESC LIMIT 3) t WHERE n > 200
SELECT region, sex, n FROM {BOTH} ORDER BY n DESC LIMIT 3 OFFSET 1
SELECT region, sex, n FROM {BOTH} ORDER BY 3 DESC FETCH FIRST 2 ROWS ONLY
SELECT DISTINCT region FROM (SELECT region, sex, n FROM {BOTH} WHERE n > 0) t WHERE n > 10
SELECT DISTINCT region, n FROM {GROUPS}
SELECT UPPER(sex) || '-' || region AS label, n FROM {BOTH}
SELECT decade, n FROM {DECADES} WHERE decade BETWEEN 20 AND 60
SELECT CASE WHEN decade < 60 THEN 'younger' ELSE 'older' END AS stage, SUM(n) AS n FROM {DECADES} GROUP BY stage
SELECT MAX(people) AS most FROM (SELECT YEAR(day) AS y, MONTH(day) AS m, COUNT(*) AS people FROM visit GROUP BY y, m)
SELECT * FROM {GROUPS} ORDER BY region
SELECT t.* FROM (SELECT sex, AVG(income) AS mean FROM person GROUP BY sex) AS t
SELECT MAX(n) AS most, SUM(visits * n) AS v FROM (SELECT visits, COUNT(*) AS n FROM (SELECT person_id, COUNT(*) AS visits FROM visit GROUP BY person_id) GROUP BY visits)
-- with
WITH a AS {GROUPS}, b AS (SELECT region, COUNT(*) AS n FROM person WHERE sex = 'F' GROUP BY region) SELECT a.region, b.n / a.n AS share FROM a JOIN b USING (region)
WITH a AS {GROUPS}, b AS (SELECT region, SUM(income) AS s FROM person GROUP BY region) SELECT a.region, a.n, b.s, b.s / a.n AS mean FROM a, b WHERE a.region = b.region ORDER BY a.region
WITH a AS {GROUPS}, t AS (SELECT SUM(n) AS total FROM a) SELECT region, 100.0 * n / total AS percent FROM a CROSS JOIN t
WITH a AS (SELECT region, sex, COUNT(*) AS n FROM person GROUP BY region, sex), f AS (SELECT region, n FROM a WHERE sex = 'F'), m AS (SELECT region, n FROM a WHERE sex = 'M') SELECT f.region, f.n - m.n AS gap FROM f JOIN m ON f.region = m.region
WITH a AS {GROUPS}, w AS (SELECT region, COUNT(*) AS n FROM person WHERE region IN ('N', 'S') GROUP BY region) SELECT a.region, COALESCE(w.n, 0) AS n FROM a LEFT JOIN w ON a.region = w.region
WITH a(r, k) AS (SELECT region, COUNT(*) FROM person GROUP BY region) SELECT r, k FROM a WHERE k > 100
WITH grown AS (SELECT region, income FROM person WHERE age >= 18), g AS (SELECT region, AVG(income) AS m FROM grown GROUP BY region) SELECT MAX(m) - MIN(m) AS gap FROM g
WITH patient AS (SELECT person_id, COUNT(*) AS k FROM visit GROUP BY person_id), d AS (SELECT k, COUNT(*) AS n FROM patient GROUP BY k) SELECT SUM(k * n) AS visits, SUM(n) AS people FROM d
WITH a AS {GROUPS} SELECT x.region, y.region AS other, x.n - y.n AS d FROM a x, a y WHERE x.region < y.region
-- functions
SELECT SQRT(COUNT(*)) AS a, LN(COUNT(*)) AS b, LOG10(COUNT(*)) AS c, LOG2(COUNT(*)) AS d, LOG(COUNT(*)) AS e FROM person
SELECT EXP(AVG(income) / 1000) AS a, POWER(AVG(age), 2) AS b, POW(AVG(age), 0.5) AS c, POWER(2, AVG(age) / 10) AS d FROM person
SELECT FLOOR(AVG(income)) AS a, CEIL(AVG(income)) AS b, TRUNC(AVG(income)) AS c, ROUND(AVG(income), -1) AS d FROM person
SELECT ROUND(AVG(income), 2) AS a, ROUND(100.0 * COUNT(*) FILTER (WHERE sex = 'F') / COUNT(*), 1) AS b FROM person
SELECT SIGN(AVG(income) - 500) AS a, ABS(AVG(income) - 600) AS b, -COUNT(*) AS c FROM person
SELECT GREATEST(COUNT(*), 1000) AS a, LEAST(SUM(income), SUM(age)) AS b FROM person
SELECT region, COUNT(*) % 7 AS a, COUNT(*) // 7 AS b FROM person GROUP BY region
SELECT CAST(AVG(income) AS INTEGER) AS a, CAST(AVG(income) AS DECIMAL(10, 1)) AS b, AVG(income)::DOUBLE AS c FROM person
SELECT CAST(COUNT(*) AS DOUBLE) / CAST(SUM(age) AS DOUBLE) AS a FROM person
SELECT COALESCE(AVG(income), 0) AS a, COALESCE(NULLIF(COUNT(*), 0), 1) AS b, SUM(income) / NULLIF(SUM(age), 0) AS c FROM person
SELECT region, CASE WHEN COUNT(*) > 300 THEN 'many' WHEN COUNT(*) > 100 THEN 'some' ELSE 'few' END AS how FROM person GROUP BY region
SELECT region, CASE region WHEN 'N' THEN 'north' ELSE 'other' END AS name, COUNT(*) AS n FROM person GROUP BY region
SELECT region, COUNT(*) > 200 AS large, AVG(income) >= 500 AND COUNT(*) < 1000 AS both FROM person GROUP BY region
SELECT region, COUNT(*) AS n FROM person GROUP BY region HAVING SQRT(COUNT(*)) > 14 ORDER BY LN(n) DESC
SELECT region, COUNT(*) AS n FROM person GROUP BY region HAVING region > 'E' AND n > 10 ORDER BY -n
SELECT region, COUNT(*) AS n FROM person GROUP BY region HAVING region LIKE 'N%' OR region IN ('S')
SELECT LOWER(region) AS r, COUNT(*) AS n FROM person GROUP BY region ORDER BY COUNT(*) / 2
SELECT COUNT(*) AS n, n * 2 AS twice, n > 10 AS some FROM person
SELECT IF(COUNT(*) > 10, SUM(income), 0) AS a FROM person
SELECT (SUM(income) - SUM(age)) * 1.0 / (COUNT(*) + 1) AS a FROM person
SELECT region, ROUND(SUM(income) / COUNT(*), 1) AS a, STDDEV(income) / AVG(income) AS cv FROM person GROUP BY region
SELECT DISTINCT COUNT(*) AS n FROM person
SELECT MEDIAN(income) / 2 + SQRT(COUNT(*)) AS a FROM person
-- windows
SELECT region, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS total, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM person GROUP BY region
SELECT region, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent FROM person GROUP BY region ORDER BY percent DESC
SELECT region, sex, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER (PARTITION BY region) AS share FROM person GROUP BY region, sex
SELECT decade, SUM(n) OVER (ORDER BY decade) AS run FROM {DECADES}
SELECT region, sex, SUM(n) OVER (PARTITION BY sex ORDER BY region) AS run FROM {BOTH}
SELECT decade, AVG(n) OVER (ORDER BY decade ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS m FROM {DECADES}
SELECT decade, SUM(n) OVER (ORDER BY decade ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS m FROM {DECADES}
SELECT decade, n - LAG(n) OVER (ORDER BY decade) AS change, LEAD(n, 2, 0) OVER (ORDER BY decade) AS later FROM {DECADES}
SELECT decade, FIRST_VALUE(n) OVER (ORDER BY decade) AS a, LAST_VALUE(n) OVER (ORDER BY decade) AS b FROM {DECADES}
SELECT region, RANK() OVER (ORDER BY n DESC) AS r, ROW_NUMBER() OVER (ORDER BY n) AS k FROM {GROUPS}
SELECT region, sex, DENSE_RANK() OVER (PARTITION BY sex ORDER BY n DESC) AS r FROM {BOTH}
SELECT region, PERCENT_RANK() OVER (ORDER BY n) AS p, CUME_DIST() OVER (ORDER BY n) AS c FROM {GROUPS}
SELECT region, NTILE(2) OVER (ORDER BY n DESC) AS half FROM {GROUPS}
SELECT region, n, MAX(n) OVER () - n AS behind, MIN(n) OVER () AS least, AVG(n) OVER () AS mean FROM {GROUPS}
SELECT region, n FROM {GROUPS} QUALIFY ROW_NUMBER() OVER (ORDER BY n DESC) <= 2
SELECT region, sex, n FROM {BOTH} QUALIFY RANK() OVER (PARTITION BY region ORDER BY n DESC) = 1
SELECT region, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM person GROUP BY region QUALIFY r <= 3
SELECT region, SUM(n) OVER (ORDER BY n DESC) AS run FROM {GROUPS}
SELECT region, SUM(n) OVER w AS run, COUNT(*) OVER w AS k FROM {GROUPS} WINDOW w AS (ORDER BY region)
SELECT region, n FROM (SELECT region, n, RANK() OVER (ORDER BY n DESC) AS r FROM {GROUPS}) WHERE r = 1
SELECT decade, ROUND(100 * SUM(n) OVER (ORDER BY decade) / SUM(n) OVER (), 1) AS upto FROM {DECADES}
SELECT region, ROW_NUMBER() OVER (ORDER BY region) AS k, n FROM {GROUPS}
SELECT decade, n * 1.0 / LAG(n) OVER (ORDER BY decade) - 1 AS growth FROM {DECADES}
-- unions
SELECT region, COUNT(*) AS n FROM person GROUP BY region UNION ALL SELECT 'all', COUNT(*) FROM person
SELECT 'women' AS who, COUNT(*) AS n FROM person WHERE sex = 'F' UNION ALL SELECT 'men', COUNT(*) FROM person WHERE sex = 'M' ORDER BY n DESC
SELECT 'mean' AS what, AVG(income) AS x FROM person UNION ALL SELECT 'visits', COUNT(*) FROM visit UNION ALL SELECT 'age', AVG(age) FROM person ORDER BY what LIMIT 2
SELECT SUM(n) AS s FROM (SELECT region AS k, COUNT(*) AS n FROM person GROUP BY region UNION ALL SELECT sex, COUNT(*) FROM person GROUP BY sex) t
-- scalars
SELECT COUNT(*) FILTER (WHERE sex = 'F') * 1.0 / (SELECT COUNT(*) FROM person) AS share FROM person
SELECT region, AVG(income) - (SELECT AVG(income) FROM person) AS gap FROM person GROUP BY region
SELECT region, COUNT(*) AS n FROM person GROUP BY region HAVING COUNT(*) > (SELECT COUNT(*) FROM person) / 4
SELECT (SELECT COUNT(*) FROM visit) / (SELECT COUNT(*) FROM person) AS visits_per_person
SELECT region, n, n - (SELECT AVG(n) FROM {GROUPS}) AS off FROM {GROUPS}
SELECT region FROM {GROUPS} WHERE n = (SELECT MAX(n) FROM {GROUPS})
SELECT MONTH(day) AS m, COUNT(*) AS n FROM visit GROUP BY m HAVING m > 2
SELECT LOWER(region) AS r, COUNT(*) AS n FROM person GROUP BY r HAVING r BETWEEN 'e' AND 'n' ORDER BY r
SELECT age // 10 AS decade, AVG(income) AS mean FROM person GROUP BY decade HAVING decade >= 3 AND decade < 7
-- comparisons in which no noise is left
SELECT region, sex, COUNT(*) AS n FROM person GROUP BY region, sex QUALIFY ROW_NUMBER() OVER (PARTITION BY region ORDER BY sex) = 1
SELECT region, COUNT(*) AS n, RANK() OVER (ORDER BY region) > 2 AS late FROM person GROUP BY region
SELECT region, n FROM (SELECT region, n, ROW_NUMBER() OVER (ORDER BY region DESC) AS place FROM {GROUPS}) t WHERE place <= 2
SELECT region, n - n = 0 AS none, n + 1 > n AS more FROM {GROUPS}
SELECT COUNT(*) AS n FROM person QUALIFY ROW_NUMBER() OVER () = 1
-- public tables among released ones
SELECT town, n FROM {GROUPS} t JOIN place USING (region) ORDER BY town
SELECT place.town, 1000 * t.n / place.people AS rate FROM {GROUPS} t, place WHERE t.region = place.region
SELECT founded, n * share AS x FROM place JOIN {GROUPS} t ON t.region = place.region WHERE people > 150
SELECT t.region, town, n FROM {GROUPS} t LEFT JOIN place p ON p.region = t.region ORDER BY 1, 2
SELECT SUM(people * 1.0 / n) AS s FROM {GROUPS} t JOIN place USING (region)
WITH t AS {GROUPS} SELECT town, n FROM place, t WHERE t.region = place.region AND n = (SELECT MAX(n) FROM t) ORDER BY town
SELECT COUNT(*) AS n FROM person WHERE region = (SELECT region FROM place WHERE town = 'Siena')
-- several tables that are measured apart
SELECT p.region, v.kind, COUNT(*) AS n FROM person p JOIN visit v ON v.person_id = p.person_id GROUP BY ROLLUP(p.region, v.kind)
SELECT region, sex, MEDIAN(age) AS m FROM person GROUP BY GROUPING SETS ((region), (sex), ())
SELECT age // 50 AS half, sex, COUNT(*) AS n, GROUPING(sex) AS g FROM person GROUP BY ROLLUP(half, sex)
SELECT region, COUNT(*) AS n FROM person GROUP BY CUBE(region) HAVING COUNT(*) > 100 ORDER BY n DESC LIMIT 2
